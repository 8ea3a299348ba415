"""Which of several candidates counts."""

import pytest
from testing.runs.memory_run import pytest_run

from clean_room_agent.orchestrator.direct.candidates import (
    Answered,
    GoalRun,
    TriedAnswer,
    choose,
    likeliest_first,
)
from clean_room_agent.orchestrator.steps.attempt import ChangeJudgment
from clean_room_agent.orchestrator.test_runs.gate import StepVerdict


def candidate(
    number: int, diff: str, likelihood: float | None, *, holds: bool = True, green: int = 0
) -> TriedAnswer:
    verdict = StepVerdict(passed=holds)
    return TriedAnswer(
        number=number,
        item=str(number),
        path="a.py",
        symbol="a",
        answer=Answered(text="", call_id=number, likelihood=likelihood),
        diff=diff,
        judgment=ChangeJudgment(
            tests=pytest_run({f"t.py::{name}": "passed" for name in range(green)}), verdict=verdict
        ),
    )


def test_one_that_turns_more_tests_green_counts_before_smaller_ones() -> None:
    small, right = candidate(1, "+a", -0.1, green=1), candidate(2, "+a b c", -0.5, green=2)
    assert chosen(small, right, candidate(3, "+a", -0.1, green=1)) == 2
    assert chosen(small, candidate(4, "+a b c", -0.1, green=3, holds=False)) == 1


def chosen(*candidates: TriedAnswer) -> int | None:
    best = choose(candidates)
    return None if best is None else best.number


def test_the_likeliest_that_holds_is_chosen() -> None:
    assert chosen(candidate(1, "+a", -0.5), candidate(2, "+b", -0.2), candidate(3, "+c", None)) == 2
    assert chosen(candidate(1, "+a", -0.5), candidate(2, "+b", -0.2, holds=False)) == 1
    assert chosen(candidate(1, "+a", -0.5, holds=False)) is None


def test_a_change_that_more_of_them_make_is_chosen_before_a_likelier_one() -> None:
    assert chosen(candidate(1, "+b", -0.1), candidate(2, "+a", -0.5), candidate(3, "+a\n", -0.4)) == 3


def test_of_equally_likely_ones_the_smaller_change_comes_first() -> None:
    both = (candidate(1, "+a\n-b\n+c", None), candidate(2, "+a\n-b", None))
    assert [one.number for one in likeliest_first(both)] == [2, 1]


def test_of_several_that_hold_the_one_that_changes_least_is_chosen() -> None:
    swapped = candidate(1, '-s = str("ascii", s)\n+s = str(s, "ascii")', -0.9)
    other = candidate(2, '-s = str("ascii", s)\n+s = s.decode("utf-8")', -0.1)
    assert chosen(swapped, other) == 1
    assert chosen(other, swapped) == 1


@pytest.mark.parametrize(
    ("before", "said", "wanted", "nearer"),
    [
        ("'kines'", "'kine s'", "'kine'", False),
        ("[9, 0]", "[9, 0, None]", "[9, 0, 0]", True),
        ("[9, 0]", "[]", "[9, 0, 0]", False),
        ("12", "11.5", "11", True),
        ("12", "13", "11", False),
        ("12", "TypeError: no", "11", False),
        ("TypeError: no", "KeyError: 1", "11", True),
        ("KeyError: 1", "12", "11", True),
        ("12", "13", "", True),
        ("12", "TypeError: no", "raises KeyError", True),
        ("12", "12", "", False),
    ],
)
def test_a_candidate_is_nearer_where_what_it_gives_is(
    before: str, said: str, wanted: str, nearer: bool
) -> None:
    base = GoalRun(green=(), said=(("t", before),))
    assert GoalRun(green=(), said=(("t", said),)).is_nearer(base, {"t": wanted}) is nearer


def test_more_green_tests_are_nearer_and_a_run_that_did_not_end_tells_nothing() -> None:
    base = GoalRun(green=(), said=(("t", "3"),))
    assert GoalRun(green=("t",)).is_nearer(base, {})
    assert not GoalRun(green=(), said=(("t", "NameError"),), whole=False).is_nearer(base, {})


def test_the_nearest_has_more_green_tests_or_a_value_more_like_the_wanted_one() -> None:
    wanted = {"t": "[9, 0, 0]", "u": "1"}
    runs = [
        GoalRun(green=(), said=(("t", "[]"),)),
        GoalRun(green=(), said=(("t", "[9, 0]"),)),
        GoalRun(green=("u",), said=(("t", "[]"),)),
    ]
    assert sorted(runs, key=lambda run: run.closeness(wanted)) == runs
