from dataclasses import replace
from typing import Any

import pytest

from clean_room_agent.orchestrator.steps.candidates import Candidate, choose, normalised_diff, why_not


def diff(*lines: str, at: int = 1) -> str:
    head = f"diff --git a/m.py b/m.py\nindex 1{at}..2{at} 100644\n--- a/m.py\n+++ b/m.py\n@@ -1,3 +{at},3 @@ def f():\n"
    return head + "".join(f"{line}\n" for line in lines)


SMALL = diff("-a", "+b")
LARGE = diff("-a", "+b", "+c", "+d")
SPACED = diff("-a", "+b  ", "+", "+c", "+d")


def candidate(number: int, **facts: Any) -> Candidate:
    base = Candidate(
        number=number, may_stay=True, goals=3, green=1, newly=0, tested=True, placed=True, diff=SMALL
    )
    return replace(base, **facts)


def chosen(*candidates: Candidate) -> int:
    return choose(candidates).number


@pytest.mark.parametrize(
    ("better", "why"),
    [
        ({"green": 2}, "attempt 2 has 2 of 3 goal tests green, this one 1"),
        ({"may_stay": True}, "attempt 2 passed, this one did not"),
        ({"newly": 0}, "attempt 2 broke no test, this one 2"),
        ({"tested": True}, "the edits of attempt 2 came to the tests"),
        ({"placed": True}, "the edits of attempt 2 could be read"),
        ({"diff": SMALL}, "attempt 2 changes less"),
    ],
)
def test_a_candidate_that_does_better_in_one_thing_is_chosen(better: dict[str, Any], why: str) -> None:
    worse: dict[str, dict[str, Any]] = {
        "green": {},
        "may_stay": {"may_stay": False},
        "newly": {"may_stay": False, "newly": 2},
        "tested": {"may_stay": False, "green": 0, "tested": False, "diff": ""},
        "placed": {"may_stay": False, "green": 0, "tested": False, "placed": False, "diff": ""},
        "diff": {"diff": LARGE},
    }
    (name,) = better
    first = candidate(1, **worse[name])
    second = replace(first, number=2, **better)
    assert choose((first, second)) == choose((second, first)) == second
    assert why_not(first, (first, second)) == why


def test_what_may_stay_comes_before_what_turns_more_tests_green_and_breaks_another() -> None:
    assert chosen(candidate(1, may_stay=False, green=3, newly=1), candidate(2, green=1)) == 2


def test_of_the_largest_group_of_equal_changes_the_smallest_is_chosen() -> None:
    candidates = (candidate(1), candidate(2, diff=SPACED), candidate(3, diff=LARGE))
    assert chosen(*candidates) == 3
    assert why_not(candidates[0], candidates) == "more candidates made the change of attempt 3"
    assert why_not(candidates[1], candidates) == "the same change as attempt 3"


def test_of_one_that_broke_nothing_and_turned_nothing_green_that_is_said() -> None:
    harmless = candidate(1, may_stay=False, green=0)
    assert why_not(harmless, (harmless, candidate(2))) == "attempt 2 has 1 of 3 goal tests green, this one 0"


def test_of_candidates_that_differ_in_nothing_the_first_is_chosen() -> None:
    assert chosen(candidate(2), candidate(1), candidate(3)) == 1


def test_a_diff_is_the_same_whatever_its_hashes_blank_lines_and_line_ends() -> None:
    assert normalised_diff(diff("-a", "+b  ", "+", at=7)) == normalised_diff(SMALL)
    assert normalised_diff(diff("-a", "+  b")) != normalised_diff(SMALL)
    assert normalised_diff(SMALL.replace("@@ -1,", "@@ -9,")) != normalised_diff(SMALL)


def test_a_candidate_has_all_there_is_to_have_with_each_goal_test_green_and_nothing_lost() -> None:
    assert candidate(1, green=3).is_full
    assert not candidate(1, green=2).is_full
    assert not candidate(1, green=3, may_stay=False).is_full
    assert candidate(1, green=0, goals=0).is_full
