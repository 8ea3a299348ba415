import pytest

from clean_room_agent.orchestrator.testing.failure_wording import telling

PYTEST = ["AssertionError: words", "assert 'a...b' == 'a...c'", "  ", "  Skipping 90 identical leading characters in diff, use -v to show",
          "  - ab", "  + ac", "  ?  ^"]  # fmt: skip
UNITTEST = ["AssertionError: {'a': 1} != {'a': 2}", "- {'a': 1}", "?       ^", "", "+ {'a': 2} : own words"]
WHERE = ["AssertionError: assert 3 == 4", " +  where 3 = len([1, 2, 3])"]


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (PYTEST, ["AssertionError: words"]),
        (UNITTEST, ["AssertionError: {'a': 1} != {'a': 2}", "own words"]),
        (WHERE, WHERE),
        (["Error: expect(received).toBe(expected) // Object.is equality", "", "Expected: 3", "Received: 2"],
         ["Error: expect(received).toBe(expected)"]),
        (["AssertionError: expected { a: 1, …(2) } to deeply equal { a: 1, …(2) }"], ["AssertionError"]),
        (["AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:", "+ actual - expected", "", "+ 1", "- 2"],
         ["AssertionError: Expected values to be strictly equal:"]),
        (["Expected values to be strictly equal:", "", "+ actual - expected"], ["Expected values to be strictly equal"]),
        (["expected [ Array(60) ] to equal [ Array(60) ]"], ["AssertionError"]),
    ],
)  # fmt: skip
def test_words_do_not_show_the_values_once_more(lines: list[str], told: list[str]) -> None:
    assert telling(lines, values_known=True) == told


def test_without_values_only_hints_stay_out() -> None:
    assert telling(PYTEST, values_known=False) == [PYTEST[0], PYTEST[1], "  - ab", "  + ac"]
