"""When a run did what, in seconds from Enter on without pauses: each kind of work, with how long it was the only one, and each
pass.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence

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
EDIT_PROMPT = "implement"
"""The prompt that asks for edits."""
LANES: Mapping[TimeKind, str] = {
    TimeKind.START: "start",
    TimeKind.PREFLIGHT: "model server check",
    TimeKind.GIT: "git",
    TimeKind.SANDBOX: "sandbox",
    TimeKind.INDEX: "index",
    TimeKind.MODEL_LOAD: "model loading",
    TimeKind.TESTS: "tests",
    TimeKind.INDEX_COPY: "index of the run",
    TimeKind.RETRIEVAL: "retrieval",
}
"""Name of each kind's lane, from top to bottom; the lanes of prompts follow."""
HEADS = ("from", "to", "seconds", "alone")
Span = tuple[float, float]
"""Begin and end, in seconds."""


class TimeLane(Struct, frozen=True, kw_only=True):
    """One kind of work, or a pass."""

    name: str
    start: float
    """Seconds from the beginning of the run, as `end`: of the first time and of the last."""
    end: float
    seconds: float
    """Time in which two things of a kind ran concurrently counts once."""
    alone: float
    """Of these, the seconds in which nothing else was in progress: what the user waited for. Of a pass, all."""


class TimeLanes(Struct, frozen=True, kw_only=True):
    """A run by kind of work and by pass."""

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
    found = _spans_of_run(trace)
    if axis is None or not found:
        return None
    covered = {
        name: union((axis.at(start), axis.at(end)) for start, end in spans) for name, spans in found.items()
    }
    passes = [
        _make_lane(entry.place or entry.row.mode, [(axis.at(min(times)), axis.at(max(times)))])
        for entry in trace.passes
        if (times := _times_of_pass(entry))
    ]
    every = union(span for spans in covered.values() for span in spans)
    total = max(every[-1][1], *(lane.end for lane in passes), 0.0)
    starts = [axis.at(recorded_span(row)[0]) for row in trace.times if row.kind is TimeKind.START]
    asked = sorted((axis.at(call_span(call)[0]), call.site.call_type) for call in trace.calls)
    return TimeLanes(
        lanes=tuple(
            _make_lane(
                name, spans, union(span for other in covered if other != name for span in covered[other])
            )
            for name, spans in covered.items()
        ),
        passes=tuple(passes),
        first_question=next((at for at, name in asked if name != PROBE_NAME), None),
        first_edit=next((at for at, name in asked if name == EDIT_PROMPT), None),
        from_enter=bool(starts) and starts[0] == 0,
        rest=max(0.0, total - length(every)),
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


def _spans_of_run(trace: RunTrace) -> dict[str, list[Span]]:
    """The lanes of recorded spans, then one for each prompt, in the order in which they were first asked."""
    calls = [call for entry in trace.passes for call in entry.calls]
    spans: dict[TimeKind, list[Span]] = {kind: [] for kind in LANES}
    for row in trace.times:
        spans[row.kind].append(recorded_span(row))
    # Who waits for something else does nothing.
    awaited = {TimeKind.RETRIEVAL: [*map(call_span, calls)], TimeKind.INDEX_COPY: spans[TimeKind.INDEX]}
    for kind, others in awaited.items():
        spans[kind] = without(union(spans[kind]), union(others))
    found = {name: spans[kind] for kind, name in LANES.items() if spans[kind]}
    for call in sorted(calls, key=lambda call: (call_span(call), call.id)):
        found.setdefault(f"model: {call.site.call_type.replace('_', ' ')}", []).append(call_span(call))
    return found


def _times_of_pass(entry: PassTrace) -> list[float]:
    """When it began and ended, and so did its calls and tests."""
    tests = [tests_span(row) for row in entry.tests if row.timestamp]
    times = [_seconds_of(time) for time in (entry.row.timestamp, entry.row.completed_at) if time]
    return times + [time for span in (*map(call_span, entry.calls), *tests) for time in span]


def _make_lane(name: str, spans: Sequence[Span], others: Sequence[Span] = ()) -> TimeLane:
    """`spans` and `others`: disjoint, in order."""
    alone = length(without(spans, others))
    return TimeLane(name=name, start=spans[0][0], end=spans[-1][1], seconds=length(spans), alone=alone)


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
    """The lanes for a terminal, a line each, then the milestones."""
    if times is None:
        return Group(Text("no times are recorded here"))
    rest = "none of these"
    names = max(len(rest), *(len(lane.name) for lane in times.lanes))
    lines = [Text(f"{'':{names}}{''.join(f'{head:>9}' for head in HEADS)}", style="dim")]
    for lane in times.lanes:
        figures = (lane.start, lane.end, lane.seconds, lane.alone)
        lines.append(Text(f"{lane.name:{names}}{''.join(f'{figure:9.1f}' for figure in figures)}"))
    lines.append(Text(f"{rest:{names}}{times.rest:27.1f}\n", style="dim"))
    lines += [*map(Text, times.milestones), Text("alone: nothing else was in progress", style="dim")]
    if times.pauses:
        lines.append(Text(f"left out: {times.paused:.0f} s in which nothing was recorded", style="dim"))
    return Group(*lines)
