"""A time line of a run: each pass, and each test run of its own, with the seconds of models, tests and the rest."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from clean_room_agent.artifacts.model_calls import CallSummary
from clean_room_agent.db.raw.passes import ValidationRow
from clean_room_agent.db.rows import moment
from clean_room_agent.report.trace import PassTrace, RunTrace

Use = Literal["model", "tests", "rest"]
PAUSE = 120.0
"""Seconds without anything recorded from which a stretch is cut to `CUT`: a run that waited overnight, for one."""
CUT = 5.0
TESTS_OF_RUN = {
    "baseline": "tests before",
    "final": "tests after",
    "restored": "tests restored",
    "recheck": "tests again",
}
NICE = (1, 2, 5)
MOST_TICKS = 6
Span = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A stretch of a bar, in seconds since the run began, pauses cut."""

    use: Use
    start: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRow:
    """One bar."""

    name: str
    place: str
    """Of the pass; "" for a test run of the run's own."""
    start: float
    seconds: float
    model: float
    """Seconds in which at least one call was under way."""
    tests: float
    segments: tuple[Segment, ...]

    @property
    def rest(self) -> float:
        """Seconds of neither: index, edits, git."""
        return max(0.0, self.seconds - self.model - self.tests)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLine:
    """The bars in the order in which they began."""

    seconds: float
    """Of the axis; above 0."""
    ticks: tuple[float, ...]
    rows: tuple[TimeRow, ...]
    pauses: int
    """Stretches that are cut."""
    paused: float
    """Seconds that they took."""


def time_line(trace: RunTrace) -> TimeLine | None:
    """The time line of a task; None where no pass and no test run is recorded. Final tests that stand for those of the last
    step were not run, and have no bar.

    Raises:
        RecordError: a timestamp of the record is none.
    """
    passes = {entry.pass_id for entry in trace.passes}
    told = {(row.duration_ms, row.test_output) for row in trace.tests if row.task_id in passes}
    own = [
        row
        for row in trace.tests
        if row.task_id not in passes and row.timestamp and (row.duration_ms, row.test_output) not in told
    ]
    bars = [_of_pass(entry) for entry in trace.passes] + [
        (TESTS_OF_RUN.get(row.kind, row.kind), "", _test_span(row), [], [_test_span(row)]) for row in own
    ]
    if not bars:
        return None
    busy = _union([span for _, _, whole, calls, tests in bars for span in (*calls, *tests, *_ends(whole))])
    clock = _Clock(busy)
    rows = tuple(
        _row(clock, name, place, whole, calls, tests)
        for name, place, whole, calls, tests in sorted(bars, key=lambda bar: bar[2])
    )
    total = max(0.001, *(row.start + row.seconds for row in rows))
    return TimeLine(
        seconds=total, ticks=_ticks(total), rows=rows, pauses=len(clock.cuts), paused=sum(clock.cuts.values())
    )


class _Clock:
    """From the record's time to seconds since the run began, without its pauses."""

    def __init__(self, busy: Sequence[Span]) -> None:
        self._start = busy[0][0]
        gaps = itertools.pairwise(busy)
        self.cuts = {one[1]: two[0] - one[1] for one, two in gaps if two[0] - one[1] > PAUSE}
        """Length of each pause, by where it begins."""

    def at(self, time: float) -> float:
        """Seconds since the run began."""
        cut = sum(
            min(time - begin, length) - min(time - begin, CUT)
            for begin, length in self.cuts.items()
            if time > begin
        )
        return time - self._start - cut


def _row(
    clock: _Clock, name: str, place: str, whole: Span, calls: Sequence[Span], tests: Sequence[Span]
) -> TimeRow:
    start, end = clock.at(whole[0]), clock.at(whole[1])
    segments = [Segment(use="rest", start=start, seconds=end - start)]
    sums: dict[Use, float] = {"model": 0.0, "tests": 0.0}
    for use, spans in (("model", calls), ("tests", tests)):
        for one in _union(spans):
            begin, length = clock.at(one[0]), clock.at(one[1]) - clock.at(one[0])
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
    calls = [_call_span(call) for call in entry.calls]
    tests = [_test_span(row) for row in entry.tests if row.timestamp]
    start = moment(entry.row.timestamp).timestamp()
    ends = [span[1] for span in (*calls, *tests)]
    end = moment(entry.row.completed_at).timestamp() if entry.row.completed_at else max(ends, default=start)
    starts = [span[0] for span in (*calls, *tests)]
    whole = (min((start, *starts)), max((end, *ends)))
    return entry.place or entry.row.mode, entry.place, whole, calls, tests


def _call_span(call: CallSummary) -> Span:
    start = moment(call.cost.timestamp).timestamp()
    return start, start + call.cost.latency_ms / 1000


def _test_span(row: ValidationRow) -> Span:
    """A test run is written when it has ended."""
    end = moment(row.timestamp).timestamp()
    return end - row.duration_ms / 1000, end


def _ends(span: Span) -> tuple[Span, Span]:
    return (span[0], span[0]), (span[1], span[1])


def _union(spans: Iterable[Span]) -> list[Span]:
    """Spans that do not touch, in order, covering the same time."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def _ticks(total: float) -> tuple[float, ...]:
    """A few round numbers of seconds from 0 on, below the total."""
    size = 0.001
    while True:
        for digit in NICE:
            step = size * digit
            if total / step <= MOST_TICKS:
                return tuple(round(step * number, 6) for number in range(int(total / step) + 1))
        size *= 10
