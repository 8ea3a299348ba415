"""`kill -9`, in short: one journal point of each run that `testing/faults/kills.py` kills at all of them."""

from pathlib import Path

import pytest
from testing.faults import kills

pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize("subject", ["long", "drawing"])
def test_a_killed_run_goes_on_to_the_same_result_and_leaves_nothing(tmp_path: Path, subject: str) -> None:
    found = kills.run("short", tmp_path, [subject])
    assert [(figure.name, figure.found) for figure in found if not figure.met] == []
    assert found[0].tried == 1


def test_a_case_that_ends_otherwise_is_found() -> None:
    bad = kills.Case(name="bad", kills=1, repeated=2, rows=3, lost=1, left=["a lock"], wrong=["another tree"])
    assert [figure.found for figure in kills.figures([bad], [])] == [1, 0, 1, 1, 1]
