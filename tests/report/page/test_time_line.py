"""Where the seconds of a run went."""

import pytest
from msgspec.structs import replace
from tests.report.conftest import LargeRun

from clean_room_agent.report.page.time_line import TimeLine, time_line
from clean_room_agent.report.time_axis import CUT
from clean_room_agent.report.trace import PassTrace, RunTrace


@pytest.fixture
def trace(large: LargeRun) -> RunTrace:
    return large.trace


def times_of(trace: RunTrace) -> TimeLine:
    found = time_line(trace)
    assert found is not None
    return found


def later(entry: PassTrace, day: str) -> PassTrace:
    def moved(timestamp: str) -> str:
        return timestamp.replace("2026-03-04", day)

    return replace(
        entry,
        row=replace(
            entry.row, timestamp=moved(entry.row.timestamp), completed_at=moved(entry.row.completed_at or "")
        ),
        calls=tuple(
            replace(call, cost=replace(call.cost, timestamp=moved(call.cost.timestamp)))
            for call in entry.calls
        ),
        tests=tuple(replace(test, timestamp=moved(test.timestamp)) for test in entry.tests),
    )


def test_each_pass_has_its_seconds_of_models_tests_and_the_rest(trace: RunTrace) -> None:
    times = times_of(trace)
    row = next(row for row in times.rows if row.place == "p1/s1/2")
    assert (round(row.model, 3), round(row.tests, 3)) == (4.0, 2.5)
    assert row.seconds == pytest.approx(row.model + row.tests + row.rest)
    assert times.rows[0].name == "tests before"
    assert times.rows[0].start == 0
    assert all(row.start + row.seconds <= times.seconds + 0.001 for row in times.rows)
    assert 0 < len(times.ticks) <= 7


def test_calls_side_by_side_are_counted_once(trace: RunTrace) -> None:
    entry = next(entry for entry in trace.passes if entry.place == "part_plan:p1")
    first = entry.calls[0]
    both = replace(entry, calls=(first, replace(first, id=first.id + 1000)))
    times = times_of(replace(trace, passes=(both,), tests=()))
    assert times.rows[0].model == pytest.approx(first.cost.latency_ms / 1000)


def test_a_night_between_two_passes_is_cut_and_told(trace: RunTrace) -> None:
    before = times_of(replace(trace, tests=()))
    moved = (*trace.passes[:-1], later(trace.passes[-1], "2026-03-05"))
    after = times_of(replace(trace, passes=moved, tests=()))
    assert (before.pauses, after.pauses) == (0, 1)
    assert after.paused > 80_000
    assert after.seconds == pytest.approx(before.seconds + CUT, abs=2)


def test_tests_that_stand_for_those_of_the_last_step_have_no_bar(trace: RunTrace) -> None:
    last = [row for row in trace.tests if row.kind == "attempt"][-1]
    final = replace(last, id=9999, kind="final", task_id=trace.task_id, attempt_id=None)
    times = times_of(replace(trace, tests=(*trace.tests[:-1], final)))
    assert "tests after" not in [row.name for row in times.rows]


def test_an_unfinished_pass_ends_with_what_is_known_of_it(trace: RunTrace) -> None:
    entry = next(entry for entry in trace.passes if entry.place == "p1/s1/2")
    cut = replace(entry, row=replace(entry.row, completed_at=None))
    assert times_of(replace(trace, passes=(cut,), tests=())).rows[0].seconds == pytest.approx(7.6, abs=0.2)


def test_nothing_recorded_is_no_time_line(trace: RunTrace) -> None:
    assert time_line(replace(trace, passes=(), tests=())) is None
