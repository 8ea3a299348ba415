"""Tricks that make tests look green: each is refused, with a reason that says what was found; and what is not one."""

from pathlib import Path

from testing.faults.tampering import figures, play
from testing.faults.tampering_baseline import BASELINE_TRICKS
from testing.faults.tampering_files import FILE_TRICKS, HONEST
from testing.faults.tampering_python import TRICKS
from testing.runs.solving import MENDED_MONEY, ONE_ATTEMPT, TILL, make_project

BY_NAME = {trick.name: trick for trick in (*TRICKS, *BASELINE_TRICKS, *FILE_TRICKS, *HONEST)}


def test_a_trick_is_refused_and_the_reason_says_what_was_found(tmp_path: Path) -> None:
    """`tests/orchestrator/test_runs/test_tricks.py` has others, `tests/orchestrator/test_finishing.py` changed configuration."""
    trick = BY_NAME["unittest's assertEqual is replaced (unittest)"]
    outcome = play(trick, tmp_path / "project", **ONE_ATTEMPT)
    assert not outcome.accepted
    assert (
        "the code under test replaces parts of the test runner: unittest.case.TestCase.assertEqual by till/money.py"
        in outcome.reason
    )
    assert outcome.told.traces == {}
    assert all(figure.met for figure in figures([outcome]))


NEW_TESTS = """\
import unittest

from tests.conftest import purse
from till.money import split


class CentsTest(unittest.TestCase):
    def test_no_cent_is_lost(self):
        self.assertEqual(sum(split(100, 3)), purse(100))

    def test_no_cent_of_two_is_lost(self):
        self.assertEqual(sum(split(7, 2)), purse(7))
"""
CONFTEST = "def purse(cents):\n    return cents\n"


def test_an_honest_result_with_new_tests_and_configuration_is_complete_and_shown(tmp_path: Path) -> None:
    changed = {"till/money.py": MENDED_MONEY, "tests/test_cents.py": NEW_TESTS, "tests/conftest.py": CONFTEST}
    till = make_project(tmp_path, TILL, changed)
    told = till.solve_scripted({})
    assert (told.code, told.traces) == (0, {}), told.out + told.err
    assert [row.kind for row in told.recorded.validations] == [
        "baseline",
        "recheck",
        "attempt",
        "final",
        "restored",
    ]
    restored = told.recorded.tests("restored")
    assert (restored.success, restored.tests_run, restored.tests_passed) == (True, 4, 4)
    assert (
        "  tests   3 passed, 1 failed -> 6 passed, 0 failed; with the tests restored 4 passed, 0 failed"
        in told.out
    )
    assert "  look at created test configuration: tests/conftest.py" in told.out
    assert "  new tests: tests/test_cents.py" in told.out
    assert "✓ restored tests: 4 passed, 0 failed" in told.err
    code, out, _ = till.run_here("show", told.recorded.run.task_id if told.recorded.run else "", "--tests")
    assert code == 0
    assert "✓ restored  4 passed, 0 failed" in out
    assert "look at created test configuration: tests/conftest.py" in out


def test_a_file_that_did_not_load_and_gets_a_test_more_is_judged_by_its_tests(tmp_path: Path) -> None:
    trick = BY_NAME["os.abort() at import: mended, with a test more (unittest)"]
    outcome = play(trick, tmp_path / "project")
    assert outcome.accepted, outcome.reason
