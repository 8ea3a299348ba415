"""When a run did what, and what nothing else was done beside."""

import io
from datetime import timedelta

import pytest
from msgspec.structs import replace
from rich.console import Console
from tests.report.conftest import Solved

from clean_room_agent.artifacts.outcomes import TimeKind
from clean_room_agent.db.raw.runs import TimeSpanRow
from clean_room_agent.db.rows import moment
from clean_room_agent.report.time_lanes import (
    Axis,
    TimeLane,
    TimeLanes,
    length,
    render_lanes,
    time_lanes,
    union,
    without,
    working_seconds,
)
from clean_room_agent.report.trace import RunTrace

BEGAN = "2026-03-04T05:00:00.000Z"


def span(kind: TimeKind, start: float, end: float, detail: str = "") -> TimeSpanRow:
    began, ended = (
        (moment(BEGAN) + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")
        for seconds in (start, end)
    )
    return TimeSpanRow(task_id="t", kind=kind, detail=detail, began_at=began, ended_at=ended)


@pytest.fixture
def trace(solved: Solved) -> RunTrace:
    """A run of which nothing but its spans is known."""
    return replace(solved.trace, passes=(), tests=(), events=())


def lanes_of(trace: RunTrace, *times: TimeSpanRow) -> TimeLanes:
    found = time_lanes(replace(trace, times=times))
    assert found is not None
    return found


def lane(lanes: TimeLanes, name: str) -> TimeLane:
    return next(lane for lane in lanes.lanes if lane.name == name)


def shown(lanes: TimeLanes | None) -> str:
    console = Console(file=io.StringIO(), width=80)
    console.print(render_lanes(lanes))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_spans_that_touch_are_one() -> None:
    assert union([(5, 6), (0, 2), (1, 3), (3, 4)]) == [(0, 4), (5, 6)]


@pytest.mark.parametrize(
    ("others", "left"),
    [
        ([], [(0, 10)]),
        ([(0, 10)], []),
        ([(2, 3), (5, 6)], [(0, 2), (3, 5), (6, 10)]),
        ([(-5, 1), (9, 20)], [(1, 9)]),
        ([(20, 30)], [(0, 10)]),
    ],
)
def test_what_is_in_others_is_taken_out(
    others: list[tuple[float, float]], left: list[tuple[float, float]]
) -> None:
    assert without([(0, 10)], others) == left
    assert length(left) == 10 - sum(min(end, 10) - max(start, 0) for start, end in others if start < 10)


def test_a_pause_is_cut_if_it_is_long_or_the_run_was_resumed_after_it() -> None:
    axis = Axis([(100, 110), (130, 140), (1140, 1150)])
    assert [axis.at(time) for time in (100, 130, 140, 1140, 1150)] == [0, 30, 40, 40, 50]
    resumed = Axis([(100, 110), (120, 130), (150, 160)], resumed=[150])
    assert resumed.pauses == {130: 20}
    assert [resumed.at(time) for time in (120, 150)] == [20, 30]


def test_what_ran_beside_something_else_was_not_waited_for(trace: RunTrace) -> None:
    lanes = lanes_of(
        trace,
        span(TimeKind.START, 0, 1),
        span(TimeKind.INDEX, 1, 7),
        span(TimeKind.TESTS, 3, 9, "baseline"),
        span(TimeKind.GIT, 10, 11, "checkout"),
        span(TimeKind.GIT, 12, 12.5, "commit"),
    )
    assert [(one.name, one.seconds, one.alone) for one in lanes.lanes] == [
        ("start", 1, 1),
        ("git", 1.5, 1.5),
        ("index", 6, 2),
        ("tests", 6, 2),
    ]
    assert (lanes.rest, lanes.from_enter) == (2, True)
    assert (lane(lanes, "git").start, lane(lanes, "git").end) == (10, 12.5)


def test_who_waits_for_the_index_does_nothing(trace: RunTrace) -> None:
    lanes = lanes_of(trace, span(TimeKind.INDEX, 0, 7), span(TimeKind.INDEX_COPY, 5, 8))
    assert (lane(lanes, "index").alone, lane(lanes, "index of the run").seconds) == (7, 1)


def test_a_run_has_a_lane_for_each_kind_of_work_and_each_pass(solved: Solved) -> None:
    lanes = time_lanes(solved.trace)
    assert lanes is not None
    assert {"git", "index", "tests", "retrieval", "model: implement"} <= {lane.name for lane in lanes.lanes}
    assert [lane.name for lane in lanes.passes] == [entry.place for entry in solved.trace.passes]
    assert lanes.first_question is not None
    assert lanes.first_edit is not None
    assert lanes.first_question < lanes.first_edit < lanes.passes[-1].end
    assert f"{lanes.first_edit:.1f} s from Enter to the first edit prompt" in shown(lanes)


def test_nothing_recorded_is_told_to_be_nothing(trace: RunTrace) -> None:
    assert time_lanes(replace(trace, times=())) is None
    assert shown(None) == "no times are recorded here\n"


def test_the_time_that_a_run_took_is_without_the_pause_before_it_was_resumed(trace: RunTrace) -> None:
    assert trace.run is not None
    times = (span(TimeKind.START, 0, 1), span(TimeKind.TESTS, 1, 10), span(TimeKind.START, 70, 80))
    run = replace(trace.run, timestamp=BEGAN, completed_at=times[-1].ended_at)
    assert working_seconds(replace(trace, run=run, times=times)) == pytest.approx(20)
