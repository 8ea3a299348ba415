"""The axis of a run's timelines: seconds since the run began, without pauses."""

import itertools
from collections.abc import Iterable, Iterator, Sequence

from clean_room_agent.artifacts.model_calls import CallSummary
from clean_room_agent.artifacts.outcomes import EventKind, TimeKind
from clean_room_agent.db.raw.passes import ValidationRow
from clean_room_agent.db.raw.runs import TimeSpanRow
from clean_room_agent.db.rows import moment
from clean_room_agent.report.trace import RunTrace, seconds_between

PAUSE = 120.0
"""Seconds without anything recorded from which on a stretch is shortened to `CUT`: for example, a run that waited
overnight.
"""
CUT = 5.0
NICE = (1, 2, 5)
MOST_TICKS = 6
Span = tuple[float, float]
"""Begin and end, in seconds."""


class Axis:
    """Converts the record's times to seconds since the run began, without pauses."""

    def __init__(self, busy: Sequence[Span], resumed: Sequence[float] = ()) -> None:
        """`busy`: in order, without overlap. A gap that ends when the run was `resumed` is a pause, however short."""
        self._start = busy[0][0]
        self.cuts = {
            before: after - before
            for (_, before), (after, _) in itertools.pairwise(busy)
            if after - before > PAUSE or any(before < time <= after for time in resumed)
        }
        """Length of each pause, by where it begins."""

    def at(self, time: float) -> float:
        """Seconds since the run began."""
        cut = sum(
            min(time - begin, length) - min(time - begin, length, CUT)
            for begin, length in self.cuts.items()
            if time > begin
        )
        return time - self._start - cut


def axis_of(trace: RunTrace) -> Axis | None:
    """The axis of everything that the record has times of; None if there is nothing.

    Raises:
        RecordError: a timestamp in the record is invalid.
    """
    busy = [recorded_span(row) for row in trace.times]
    busy += [tests_span(row) for row in trace.tests if row.timestamp]
    for entry in trace.passes:
        ends = filter(None, (entry.row.timestamp, entry.row.completed_at))
        busy += [(seconds_of(end), seconds_of(end)) for end in ends]
        busy += [call_span(call) for call in entry.calls]
    return Axis(union(busy), _resumed(trace)) if busy else None


def working_seconds(trace: RunTrace, start: str, end: str | None) -> float | None:
    """Seconds between two of the record's timestamps without the trace's pauses; None while there is no end.

    Raises:
        RecordError: a timestamp in the record is invalid.
    """
    total, axis = seconds_between(start, end), axis_of(trace)
    return total if total is None or axis is None else max(0.0, total - sum(axis.cuts.values()))


def _resumed(trace: RunTrace) -> list[float]:
    """When the processes that resumed the run were started; of older records, when they had looked it up."""
    starts = sorted(recorded_span(row)[0] for row in trace.times if row.kind is TimeKind.START)
    noted = [seconds_of(event.timestamp) for event in trace.events if event.kind == EventKind.RESUMED]
    return starts[1:] or noted


def recorded_span(row: TimeSpanRow) -> Span:
    """The span that the row describes."""
    return seconds_of(row.began_at), seconds_of(row.ended_at)


def call_span(call: CallSummary) -> Span:
    """The span of a call."""
    start = seconds_of(call.cost.timestamp)
    return start, start + call.cost.latency_ms / 1000


def tests_span(row: ValidationRow) -> Span:
    """The span of a test run, whose row is written at its end."""
    end = seconds_of(row.timestamp)
    return end - row.duration_ms / 1000, end


def seconds_of(timestamp: str) -> float:
    """A timestamp of the record, in seconds.

    Raises:
        RecordError: it is invalid.
    """
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


def ticks(total: float) -> tuple[float, ...]:
    """A few round numbers of seconds, or of minutes, from 0 on, below the total."""
    step = next(step for step in _steps() if total / step <= MOST_TICKS)
    return tuple(round(step * number, 6) for number in range(int(total / step) + 1))


def _steps() -> Iterator[float]:
    """The possible steps of ticks: up to half a minute, then whole minutes."""
    yield from (size * digit for size in (0.001, 0.01, 0.1, 1) for digit in NICE)
    yield from (10, 20, 30)
    for size in itertools.count():
        yield from (60 * 10**size * digit for digit in NICE)
