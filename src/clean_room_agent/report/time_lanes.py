"""When a run did what: a lane for each kind of work, from Enter on, and how long it was the only one."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from clean_room_agent.artifacts.outcomes import TimeKind
from clean_room_agent.db.raw.passes import ValidationRow
from clean_room_agent.llm.probes import PROBE_NAME
from clean_room_agent.report.time_axis import (
    Axis,
    Span,
    axis_of,
    call_span,
    length,
    recorded_span,
    tests_span,
    ticks,
    union,
    without,
)
from clean_room_agent.report.trace import RunTrace

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
NOT_RECORDED = (
    "An older cra recorded this run, and did not note when git, the sandbox, the index and retrieval were at work: "
    "only tests and model calls are shown."
)


class Stretch(Struct, frozen=True, kw_only=True):
    """A part of a lane, in seconds from Enter without pauses."""

    start: float
    seconds: float
    detail: str
    """What exactly was done; "" if the lane's name says it."""


class TimeLane(Struct, frozen=True, kw_only=True):
    """One kind of work."""

    name: str
    use: LaneUse
    stretches: tuple[Stretch, ...]
    seconds: float
    """Time in which two things of a kind ran concurrently counts once."""
    alone: float
    """Of these, the seconds in which nothing else was in progress: what the user waited for."""


class TimeLanes(Struct, frozen=True, kw_only=True):
    """A run by kind of work."""

    seconds: float
    """Of the axis; above 0."""
    ticks: tuple[float, ...]
    lanes: tuple[TimeLane, ...]
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
    missing: str
    """What the record does not have, in words."""

    @property
    def milestones(self) -> tuple[str, ...]:
        """When the first question and the first edit prompt were sent, in words."""
        since = "from Enter" if self.from_enter else "from the first thing recorded"
        said = (("first question", self.first_question), ("first edit prompt", self.first_edit))
        return tuple(
            f"{seconds:.1f} s {since} to the {what}" for what, seconds in said if seconds is not None
        )


def time_lanes(trace: RunTrace) -> TimeLanes | None:
    """The lanes of a task; None if the record has no times of it.

    Raises:
        RecordError: a timestamp in the record is invalid.
    """
    axis = axis_of(trace)
    if axis is None:
        return None
    found = _own_lanes(trace) | _call_lanes(trace)
    if not found:
        return None
    placed = {
        name: (use, [(axis.at(start), axis.at(end), detail) for start, end, detail in parts])
        for name, (use, parts) in found.items()
    }
    covered = {name: union((start, end) for start, end, _ in parts) for name, (_, parts) in placed.items()}
    starts = [axis.at(recorded_span(row)[0]) for row in trace.times if row.kind is TimeKind.START]
    total = max(0.001, *(spans[-1][1] for spans in covered.values()))
    return TimeLanes(
        seconds=total,
        ticks=ticks(total),
        lanes=tuple(
            TimeLane(
                name=name,
                use=use,
                stretches=tuple(
                    Stretch(start=start, seconds=end - start, detail=detail) for start, end, detail in parts
                ),
                seconds=length(covered[name]),
                alone=length(
                    without(
                        covered[name],
                        union(span for other in covered if other != name for span in covered[other]),
                    )
                ),
            )
            for name, (use, parts) in placed.items()
        ),
        first_question=_asked(trace, axis, lambda name: name != PROBE_NAME),
        first_edit=_asked(trace, axis, lambda name: name == EDIT_PROMPT),
        from_enter=bool(starts) and starts[0] == 0,
        rest=max(0.0, total - length(union(span for spans in covered.values() for span in spans))),
        pauses=len(axis.cuts),
        paused=sum(axis.cuts.values()),
        missing="" if trace.times else NOT_RECORDED,
    )


Part = tuple[float, float, str]
"""Begin, end, and what exactly was done."""


def _own_lanes(trace: RunTrace) -> dict[str, tuple[LaneUse, list[Part]]]:
    """The lanes of recorded spans, and of test runs that an older version recorded without one."""
    parts: dict[TimeKind, list[Part]] = {kind: [] for kind in LANES}
    for row in trace.times:
        parts[row.kind].append((*recorded_span(row), row.detail))
    timed = union((start, end) for start, end, _ in parts[TimeKind.TESTS])
    older = [(*tests_span(row), row.kind) for row in _tests_that_ran(trace)]
    parts[TimeKind.TESTS] += [one for one in older if without([one[:2]], timed) == [one[:2]]]
    calls = union(call_span(call) for entry in trace.passes for call in entry.calls)
    index = union((start, end) for start, end, _ in parts[TimeKind.INDEX])
    # Who waits for something else does nothing.
    parts[TimeKind.RETRIEVAL] = _without(parts[TimeKind.RETRIEVAL], calls)
    parts[TimeKind.INDEX_COPY] = _without(parts[TimeKind.INDEX_COPY], index)
    return {name: (use, parts[kind]) for kind, (name, use) in LANES.items() if parts[kind]}


def _call_lanes(trace: RunTrace) -> dict[str, tuple[LaneUse, list[Part]]]:
    """A lane for each prompt, in the order in which they were first asked."""
    parts: defaultdict[str, list[Part]] = defaultdict(list)
    calls = [call for entry in trace.passes for call in entry.calls]
    for call in sorted(calls, key=lambda call: (call_span(call), call.id)):
        parts[call.site.call_type.replace("_", " ")].append((*call_span(call), call.site.item))
    return {f"model: {name}": ("model", found) for name, found in parts.items()}


def _tests_that_ran(trace: RunTrace) -> list[ValidationRow]:
    """The test runs that really took place, without a final one that reuses the last step's."""
    seen = set()
    found = []
    for row in trace.tests:
        key = (row.duration_ms, row.test_output, row.command)
        if row.timestamp and key not in seen:
            found.append(row)
        seen.add(key)
    return found


def _without(parts: Sequence[Part], others: Sequence[Span]) -> list[Part]:
    return [(*span, detail) for start, end, detail in parts for span in without([(start, end)], others)]


def _asked(trace: RunTrace, axis: Axis, wanted: Callable[[str], bool]) -> float | None:
    """When the first call of a wanted prompt began."""
    calls = [call for entry in trace.passes for call in entry.calls if wanted(call.site.call_type)]
    return min((axis.at(call_span(call)[0]) for call in calls), default=None)
