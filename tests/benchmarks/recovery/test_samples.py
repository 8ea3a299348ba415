"""Divisions of the same answers into attempts and candidates are measured with the same luck."""

import pytest
from benchmarks.recovery.samples import CODERS, DIVISIONS, Outcome, measure, page


@pytest.mark.parametrize("division", [(6, 1), (1, 6)])
def test_a_division_draws_no_more_than_its_answers(division: tuple[int, int]) -> None:
    one, again = (measure(0, division, 1) for _ in range(2))
    assert one == again
    assert 1 <= one.answers <= 6
    assert one.tests <= one.answers


def test_the_table_has_a_row_for_each_coder_and_division() -> None:
    outcome = Outcome(solved=True, answers=2, tokens=100, tests=1)
    found = {(number, division): [outcome] for number in range(len(CODERS)) for division in DIVISIONS}
    text = page(found)
    assert text.count("| 1/1 | 2 | 100 | 1 |") == len(CODERS) * len(DIVISIONS)
