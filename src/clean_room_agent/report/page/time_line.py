"""A timeline of a run: each pass, and each separate test run, with the seconds of models, tests and the rest."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from clean_room_agent.db.rows import moment
from clean_room_agent.report.time_axis import Axis, Span, axis_of, call_span, tests_span, ticks, union
from clean_room_agent.report.trace import PassTrace, RunTrace

Use = Literal["model", "tests", "rest"]
TESTS_OF_RUN = {
    "baseline": "tests before",
    "final": "tests after",
    "restored": "tests restored",
    "recheck": "tests again",
}


class Segment(Struct, frozen=True, kw_only=True):
    """A stretch of a bar, in seconds since the run began, pauses cut."""

    use: Use
    start: float
    seconds: float


class TimeRow(Struct, frozen=True, kw_only=True):
    """One bar."""

    name: str
    place: str
    """Of the pass; "" for a test run of the run itself."""
    start: float
    seconds: float
    model: float
    """Seconds in which at least one call was in progress."""
    tests: float
    segments: tuple[Segment, ...]

    @property
    def rest(self) -> float:
        """Seconds of neither: index, edits, git."""
        return max(0.0, self.seconds - self.model - self.tests)


class TimeLine(Struct, frozen=True, kw_only=True):
    """The bars in the order in which they began."""

    seconds: float
    """Of the axis; above 0."""
    ticks: tuple[float, ...]
    rows: tuple[TimeRow, ...]
    pauses: int
    """Stretches that are cut."""
    paused: float
    """The total length of these, in seconds."""


def time_line(trace: RunTrace) -> TimeLine | None:
    """The timeline of a task; None if no pass and no test run is recorded. If the last step's tests were used as the
    final tests, these were not run and have no bar.

    Raises:
        RecordError: a timestamp in the record is invalid.
    """
    passes = {entry.pass_id for entry in trace.passes}
    told = {(row.duration_ms, row.test_output) for row in trace.tests if row.task_id in passes}
    own = [
        row
        for row in trace.tests
        if row.task_id not in passes and row.timestamp and (row.duration_ms, row.test_output) not in told
    ]
    bars = [_of_pass(entry) for entry in trace.passes] + [
        (TESTS_OF_RUN.get(row.kind, row.kind), "", tests_span(row), [], [tests_span(row)]) for row in own
    ]
    if not bars:
        return None
    axis = axis_of(trace)
    assert axis is not None, "what has a bar has times"
    rows = tuple(
        _row(axis, name, place, whole, calls, tests)
        for name, place, whole, calls, tests in sorted(bars, key=lambda bar: bar[2])
    )
    total = max(0.001, *(row.start + row.seconds for row in rows))
    return TimeLine(
        seconds=total, ticks=ticks(total), rows=rows, pauses=len(axis.cuts), paused=sum(axis.cuts.values())
    )


def _row(
    axis: Axis, name: str, place: str, whole: Span, calls: Sequence[Span], tests: Sequence[Span]
) -> TimeRow:
    start, end = axis.at(whole[0]), axis.at(whole[1])
    segments = [Segment(use="rest", start=start, seconds=end - start)]
    sums: dict[Use, float] = {"model": 0.0, "tests": 0.0}
    for use, spans in (("model", calls), ("tests", tests)):
        for one in union(spans):
            begin, length = axis.at(one[0]), axis.at(one[1]) - axis.at(one[0])
            sums[use] += length  # type: ignore[index]
            segments.append(Segment(use=use, start=begin, seconds=length))  # type: ignore[arg-type]
    return TimeRow(
        name=name,
        place=place,
        start=start,
        seconds=end - start,
        model=sums["model"],
        tests=sums["tests"],
        segments=tuple(segments),
    )


def _of_pass(entry: PassTrace) -> tuple[str, str, Span, list[Span], list[Span]]:
    """Name, place, all of it, calls, tests."""
    calls = [call_span(call) for call in entry.calls]
    tests = [tests_span(row) for row in entry.tests if row.timestamp]
    start = moment(entry.row.timestamp).timestamp()
    ends = [span[1] for span in (*calls, *tests)]
    end = moment(entry.row.completed_at).timestamp() if entry.row.completed_at else max(ends, default=start)
    starts = [span[0] for span in (*calls, *tests)]
    whole = (min((start, *starts)), max((end, *ends)))
    return entry.place or entry.row.mode, entry.place, whole, calls, tests
