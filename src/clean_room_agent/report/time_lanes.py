"""When a run did what, in seconds from Enter on without pauses: a lane for each kind of work, with how long it was the only
one, and a lane for each pass.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from rich.console import Group
from rich.text import Text

from clean_room_agent.artifacts.model_calls import CallSummary
from clean_room_agent.artifacts.outcomes import TimeKind
from clean_room_agent.db.raw.passes import ValidationRow
from clean_room_agent.db.raw.runs import TimeSpanRow
from clean_room_agent.db.rows import moment
from clean_room_agent.llm.probes import PROBE_NAME
from clean_room_agent.report.trace import PassTrace, RunTrace, seconds_between

PAUSE = 120.0
"""Seconds without anything recorded from which on a stretch is left out: for example, a run that waited overnight."""
LaneUse = Literal["own", "index", "tests", "model"]
EDIT_PROMPT = "implement"
"""The prompt that asks for edits."""
LANES: Mapping[TimeKind, tuple[str, LaneUse]] = {
    TimeKind.START: ("start", "own"),
    TimeKind.PREFLIGHT: ("model server check", "own"),
    TimeKind.GIT: ("git", "own"),
    TimeKind.SANDBOX: ("sandbox", "own"),
    TimeKind.INDEX: ("index", "index"),
    TimeKind.MODEL_LOAD: ("model loading", "model"),
    TimeKind.TESTS: ("tests", "tests"),
    TimeKind.INDEX_COPY: ("index of the run", "index"),
    TimeKind.RETRIEVAL: ("retrieval", "own"),
}
"""Name and colour of each kind's lane, from top to bottom; the lanes of prompts follow."""
WIDTH, FIGURES = 80, 18
"""Columns of a line with a bar, and of the two figures at its end."""
COLOURS: Mapping[LaneUse, str] = {"own": "", "index": "magenta", "tests": "green", "model": "blue"}
Span = tuple[float, float]
"""Begin and end, in seconds."""
Part = tuple[float, float, LaneUse, str]
"""Begin, end, and what was done, in a word and exactly."""


class Stretch(Struct, frozen=True, kw_only=True):
    """A part of a lane."""

    start: float
    seconds: float
    use: LaneUse
    detail: str
    """What exactly was done; "" if the lane's name says it."""


class TimeLane(Struct, frozen=True, kw_only=True):
    """One kind of work, or a pass."""

    name: str
    stretches: tuple[Stretch, ...]
    seconds: float
    """Time in which two things of a kind ran concurrently counts once."""
    alone: float
    """Of these, the seconds in which nothing else was in progress: what the user waited for. Of a pass, all."""


class TimeLanes(Struct, frozen=True, kw_only=True):
    """A run by kind of work and by pass."""

    seconds: float
    """Of the axis; above 0."""
    lanes: tuple[TimeLane, ...]
    passes: tuple[TimeLane, ...]
    first_question: float | None
    """Seconds from the beginning to the first question to a model; None if none was asked."""
    first_edit: float | None
    """The same for the first prompt that asks for edits."""
    from_enter: bool
    """Whether the axis begins when the user pressed Enter."""
    rest: float
    """Seconds in which none of this was in progress."""
    pauses: int
    """Stretches without anything recorded that are left out."""
    paused: float
    """The total length of these, in seconds."""

    @property
    def milestones(self) -> tuple[str, ...]:
        """When the first question and the first edit prompt were sent, in words."""
        since = "from Enter" if self.from_enter else "from the first thing recorded"
        said = (("first question", self.first_question), ("first edit prompt", self.first_edit))
        return tuple(
            f"{seconds:.1f} s {since} to the {what}" for what, seconds in said if seconds is not None
        )


class Axis:
    """Converts the record's times to seconds since the run began, without pauses."""

    def __init__(self, busy: Sequence[Span], resumed: Sequence[float] = ()) -> None:
        """`busy`: in order, without overlap. A gap that ends when the run was `resumed` is a pause, however short."""
        self._start = busy[0][0]
        self.pauses = {
            before: after - before
            for (_, before), (after, _) in itertools.pairwise(busy)
            if after - before > PAUSE or any(before < time <= after for time in resumed)
        }
        """Length of each pause, by where it begins."""

    def at(self, time: float) -> float:
        """Seconds since the run began."""
        paused = (min(time - begin, length) for begin, length in self.pauses.items() if time > begin)
        return time - self._start - sum(paused)


def time_lanes(trace: RunTrace) -> TimeLanes | None:
    """The lanes of a task; None if the record has no times of it.

    Raises:
        RecordError: a timestamp in the record is invalid.
    """
    axis = _axis_of(trace)
    found = _parts_of_run(trace)
    if axis is None or not found:
        return None
    placed = {
        name: [(axis.at(start), axis.at(end), use, detail) for start, end, use, detail in parts]
        for name, parts in found.items()
    }
    covered = {name: union(part[:2] for part in parts) for name, parts in placed.items()}
    passes = [
        _lane(
            entry.place or entry.row.mode, [(axis.at(part[0]), axis.at(part[1]), *part[2:]) for part in parts]
        )
        for entry in trace.passes
        if (parts := _parts_of_pass(entry))
    ]
    ends = [span.start + span.seconds for lane in passes for span in lane.stretches]
    total = max(0.001, *(spans[-1][1] for spans in covered.values()), *ends)
    starts = [axis.at(recorded_span(row)[0]) for row in trace.times if row.kind is TimeKind.START]
    asked = sorted((axis.at(call_span(call)[0]), call.site.call_type) for call in trace.calls)
    return TimeLanes(
        seconds=total,
        lanes=tuple(
            _lane(name, parts, union(span for other in covered if other != name for span in covered[other]))
            for name, parts in placed.items()
        ),
        passes=tuple(passes),
        first_question=next((at for at, name in asked if name != PROBE_NAME), None),
        first_edit=next((at for at, name in asked if name == EDIT_PROMPT), None),
        from_enter=bool(starts) and starts[0] == 0,
        rest=max(0.0, total - length(union(span for spans in covered.values() for span in spans))),
        pauses=len(axis.pauses),
        paused=sum(axis.pauses.values()),
    )


def working_seconds(trace: RunTrace) -> float | None:
    """How long the run worked, without its pauses; None while it has not ended.

    Raises:
        RecordError: a timestamp in the record is invalid.
    """
    if trace.run is None:
        return trace.passes[0].seconds if trace.passes else None
    total, axis = seconds_between(trace.run.timestamp, trace.run.completed_at), _axis_of(trace)
    return total if total is None or axis is None else max(0.0, total - sum(axis.pauses.values()))


def _axis_of(trace: RunTrace) -> Axis | None:
    """The axis of everything that the record has times of; None if there is nothing."""
    busy = [recorded_span(row) for row in trace.times]
    busy += [tests_span(row) for row in trace.tests if row.timestamp]
    for entry in trace.passes:
        ends = filter(None, (entry.row.timestamp, entry.row.completed_at))
        busy += [(at, at) for at in map(_seconds_of, ends)]
        busy += map(call_span, entry.calls)
    starts = sorted(recorded_span(row)[0] for row in trace.times if row.kind is TimeKind.START)
    return Axis(union(busy), starts[1:]) if busy else None


def _parts_of_run(trace: RunTrace) -> dict[str, list[Part]]:
    """The lanes of recorded spans, then one for each prompt, in the order in which they were first asked."""
    calls = [call for entry in trace.passes for call in entry.calls]
    rows: dict[TimeKind, list[tuple[float, float, str]]] = {kind: [] for kind in LANES}
    for row in trace.times:
        rows[row.kind].append((*recorded_span(row), row.detail))
    # Who waits for something else does nothing.
    index = [row[:2] for row in rows[TimeKind.INDEX]]
    for kind, awaited in ((TimeKind.RETRIEVAL, [*map(call_span, calls)]), (TimeKind.INDEX_COPY, index)):
        rows[kind] = [
            (*span, detail)
            for start, end, detail in rows[kind]
            for span in without([(start, end)], union(awaited))
        ]
    found: dict[str, list[Part]] = {}
    for kind, (name, use) in LANES.items():
        if rows[kind]:
            found[name] = [(start, end, use, detail) for start, end, detail in rows[kind]]
    for call in sorted(calls, key=lambda call: (call_span(call), call.id)):
        lane = found.setdefault(f"model: {call.site.call_type.replace('_', ' ')}", [])
        lane.append((*call_span(call), "model", call.site.item))
    return found


def _parts_of_pass(entry: PassTrace) -> list[Part]:
    """The pass as a whole, then its calls and tests."""
    calls = [call_span(call) for call in entry.calls]
    tests = [tests_span(row) for row in entry.tests if row.timestamp]
    times = [_seconds_of(time) for time in (entry.row.timestamp, entry.row.completed_at) if time]
    times += [time for span in (*calls, *tests) for time in span]
    return [
        (min(times), max(times), "own", ""),
        *((*span, "model", "") for span in union(calls)),
        *((*span, "tests", "") for span in union(tests)),
    ]


def _lane(name: str, parts: Sequence[Part], others: Sequence[Span] = ()) -> TimeLane:
    covered = union(part[:2] for part in parts)
    return TimeLane(
        name=name,
        stretches=tuple(
            Stretch(start=start, seconds=end - start, use=use, detail=detail)
            for start, end, use, detail in parts
        ),
        seconds=length(covered),
        alone=length(without(covered, others)),
    )


def recorded_span(row: TimeSpanRow) -> Span:
    """The span that the row describes."""
    return _seconds_of(row.began_at), _seconds_of(row.ended_at)


def call_span(call: CallSummary) -> Span:
    """The span of a call."""
    start = _seconds_of(call.cost.timestamp)
    return start, start + call.cost.latency_ms / 1000


def tests_span(row: ValidationRow) -> Span:
    """The span of a test run, whose row is written at its end."""
    end = _seconds_of(row.timestamp)
    return end - row.duration_ms / 1000, end


def _seconds_of(timestamp: str) -> float:
    return moment(timestamp).timestamp()


def union(spans: Iterable[Span]) -> list[Span]:
    """Disjoint spans, in order, that cover the same time."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def without(spans: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """The parts of `spans` that are in none of `others`; all are in order, without overlap."""
    found: list[Span] = []
    for start, end in spans:
        at = start
        for begin, stop in others:
            if begin < end and stop > at:
                if begin > at:
                    found.append((at, begin))
                at = stop
        if at < end:
            found.append((at, end))
    return found


def length(spans: Iterable[Span]) -> float:
    """The total length in seconds."""
    return sum(end - start for start, end in spans)


def render_lanes(times: TimeLanes | None) -> Group:
    """The lanes for a terminal of 80 columns, a line each, then the milestones."""
    if times is None:
        return Group(Text("no times are recorded here"))
    rest = "none of these"
    names = max(len(rest), *(len(lane.name) for lane in times.lanes))
    columns = max(0, WIDTH - names - FIGURES - 2)
    lines = [Text(f"{'':{names}}  {'':{columns}}{'seconds':>9}{'alone':>9}", style="dim")]
    for lane in times.lanes:
        bar = (_bar(lane, times.seconds, columns), COLOURS[lane.stretches[0].use])
        lines.append(Text.assemble(f"{lane.name:{names}}  ", bar, f"{lane.seconds:9.1f}{lane.alone:9.1f}"))
    lines.append(Text(f"{rest:{names}}  {'':{columns}}{times.rest:9.1f}\n", style="dim"))
    lines += [*map(Text, times.milestones), Text("alone: nothing else was in progress", style="dim")]
    if times.pauses:
        lines.append(Text(f"left out: {times.paused:.0f} s in which nothing was recorded", style="dim"))
    return Group(*lines)


def _bar(lane: TimeLane, seconds: float, columns: int) -> str:
    """The bar; a column is busy if the lane was active at any time in it."""
    cells = ["·"] * columns
    for one in lane.stretches if columns else ():
        first = min(int(one.start / seconds * columns), columns - 1)
        last = math.ceil((one.start + one.seconds) / seconds * columns)
        for column in range(first, min(max(last, first + 1), columns)):
            cells[column] = "█"
    return "".join(cells)
