"""Seconds since a run began."""

import pytest

from clean_room_agent.report.time_axis import CUT, Axis, length, ticks, union, without


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
def test_what_lies_in_others_is_taken_out(
    others: list[tuple[float, float]], left: list[tuple[float, float]]
) -> None:
    assert without([(0, 10)], others) == left
    assert length(left) == 10 - sum(min(end, 10) - max(start, 0) for start, end in others if start < 10)


def test_a_long_pause_is_cut_and_a_short_one_is_not() -> None:
    axis = Axis([(100, 110), (130, 140), (1140, 1150)])
    assert [axis.at(time) for time in (100, 130, 140, 1140, 1150)] == [0, 30, 40, 40 + CUT, 50 + CUT]
    assert axis.cuts == {140: 1000}


def test_a_pause_before_a_run_was_resumed_is_cut_however_short() -> None:
    axis = Axis([(100, 110), (120, 130), (150, 160), (163, 170)], resumed=[150, 163])
    assert axis.cuts == {130: 20, 160: 3}
    assert [axis.at(time) for time in (120, 150, 163, 170)] == [20, 30 + CUT, 43 + CUT, 50 + CUT]


@pytest.mark.parametrize("total", [0.004, 0.7, 12.9, 200.0, 90_000.0])
def test_ticks_are_few_and_within_the_axis(total: float) -> None:
    found = ticks(total)
    assert found[0] == 0
    assert found[-1] <= total
    assert 2 < len(found) <= 7


def test_ticks_of_a_long_run_are_whole_minutes() -> None:
    assert ticks(262.0) == (0, 60, 120, 180, 240)
    assert ticks(130.0) == (0, 30, 60, 90, 120)
