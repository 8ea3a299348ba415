"""When a run did what, and what nothing else went on beside."""

from datetime import timedelta

import pytest
from msgspec.structs import replace
from rich.console import Console
from tests.report.conftest import LargeRun

from clean_room_agent.artifacts.outcomes import TimeKind
from clean_room_agent.db.raw.runs import TimeSpanRow
from clean_room_agent.db.rows import moment
from clean_room_agent.report.lane_table import render_lanes
from clean_room_agent.report.time_axis import call_span, seconds_of
from clean_room_agent.report.time_lanes import NOT_RECORDED, TimeLane, TimeLanes, time_lanes
from clean_room_agent.report.trace import RunTrace

BEGAN = "2026-03-04T05:00:00.000Z"


def span(kind: TimeKind, start: float, end: float, detail: str = "") -> TimeSpanRow:
    began, ended = (
        (moment(BEGAN) + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")
        for seconds in (start, end)
    )
    return TimeSpanRow(task_id="t", kind=kind, detail=detail, began_at=began, ended_at=ended)


@pytest.fixture
def trace(large: LargeRun) -> RunTrace:
    """A run of which nothing but its spans is known."""
    return replace(large.trace, passes=(), tests=())


def lanes_of(trace: RunTrace) -> TimeLanes:
    found = time_lanes(trace)
    assert found is not None
    return found


def lane(lanes: TimeLanes, name: str) -> TimeLane:
    return next(lane for lane in lanes.lanes if lane.name == name)


def shown(lanes: TimeLanes | None, width: int) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(render_lanes(lanes))
    return capture.get().splitlines()


def test_what_ran_beside_something_else_was_not_waited_for(trace: RunTrace) -> None:
    spans = (
        span(TimeKind.START, 0, 1),
        span(TimeKind.INDEX, 1, 7),
        span(TimeKind.TESTS, 3, 9, "baseline"),
        span(TimeKind.GIT, 10, 11, "checkout"),
        span(TimeKind.GIT, 12, 12.5, "commit"),
    )
    lanes = lanes_of(replace(trace, times=spans))
    assert [(one.name, one.seconds, one.alone) for one in lanes.lanes] == [
        ("start", 1, 1),
        ("git", 1.5, 1.5),
        ("index", 6, 2),
        ("tests", 6, 2),
    ]
    assert (lanes.seconds, lanes.rest, lanes.missing, lanes.from_enter) == (12.5, 2, "", True)
    assert [(one.start, one.detail) for one in lane(lanes, "git").stretches] == [
        (10, "checkout"),
        (12, "commit"),
    ]


def test_who_waits_for_the_index_does_nothing(trace: RunTrace) -> None:
    spans = (span(TimeKind.INDEX, 0, 7), span(TimeKind.INDEX_COPY, 5, 8))
    lanes = lanes_of(replace(trace, times=spans))
    assert (lane(lanes, "index").alone, lane(lanes, "index of the run").seconds) == (7, 1)


def test_a_context_takes_what_its_calls_leave(large: LargeRun) -> None:
    entry = next(entry for entry in large.trace.passes if entry.calls)
    one = replace(entry, calls=entry.calls[:1])
    start, end = (time - seconds_of(BEGAN) for time in call_span(entry.calls[0]))
    spans = (span(TimeKind.RETRIEVAL, start - 2, end + 1),)
    lanes = lanes_of(replace(large.trace, tests=(), passes=(one,), times=spans))
    assert lane(lanes, "retrieval").seconds == pytest.approx(3, abs=0.01)


def test_questions_and_edits_are_counted_from_enter(large: LargeRun) -> None:
    first = min(call_span(call)[0] for entry in large.trace.passes for call in entry.calls)
    edit = min(
        call_span(call)[0]
        for entry in large.trace.passes
        for call in entry.calls
        if call.site.call_type == "implement"
    )
    at = first - seconds_of(BEGAN) - 10
    lanes = lanes_of(replace(large.trace, times=(span(TimeKind.START, at, at + 1),)))
    assert lanes.first_question == pytest.approx(10, abs=0.01)
    assert lanes.first_edit == pytest.approx(10 + edit - first, abs=0.01)
    assert lanes.milestones[0] == "10.0 s from Enter to the first question"


def test_of_an_older_record_only_what_it_has_is_shown(large: LargeRun) -> None:
    lanes = lanes_of(large.trace)
    assert {one.name.partition(":")[0] for one in lanes.lanes} == {"tests", "model"}
    assert (lanes.missing, lanes.from_enter) == (NOT_RECORDED, False)
    assert "from the first thing recorded" in lanes.milestones[0]
    assert NOT_RECORDED in " ".join(shown(lanes, 1000))


def test_tests_that_stand_for_those_of_the_last_step_are_not_counted_twice(large: LargeRun) -> None:
    before = lane(lanes_of(large.trace), "tests").seconds
    last = [row for row in large.trace.tests if row.kind == "attempt"][-1]
    final = replace(last, id=9999, kind="final", task_id=large.trace.task_id, attempt_id=None)
    after = lanes_of(replace(large.trace, tests=(*large.trace.tests, final)))
    assert lane(after, "tests").seconds == before


def test_nothing_recorded_is_said_to_be_nothing(trace: RunTrace) -> None:
    assert time_lanes(trace) is None
    assert shown(None, 80) == ["no times are recorded here"]


def test_the_start_of_a_process_that_went_on_with_the_run_is_not_enter(large: LargeRun) -> None:
    last = max(call_span(call)[1] for entry in large.trace.passes for call in entry.calls) - seconds_of(BEGAN)
    lanes = lanes_of(replace(large.trace, times=(span(TimeKind.START, last + 500, last + 501),)))
    assert not lanes.from_enter
    assert lanes.pauses == 1
    assert lanes.paused == pytest.approx(500, abs=20)
