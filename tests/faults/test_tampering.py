"""Tricks that make tests look green: each is refused, with a reason that says what was found; and what is not one."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from testing.faults.tampering import figures, play
from testing.faults.tampering_python import PYTEST, RED, TRICKS
from testing.faults.tampering_script import MONEY, script_tricks
from testing.runs.solving import MENDED_MONEY, ONE_ATTEMPT, TILL, make_project

BY_NAME = {trick.name: trick for trick in TRICKS}
SAID = {
    "os._exit(0) at import (unittest)": "unittest ended before it printed its summary",
    "conftest.py makes every report a pass": (
        "the tests pass only with what the result changes about them; without conftest.py: "
        f"failing: tests/test_money.py::MoneyTest::{RED}"
    ),
    "the plan names an old conftest.py": "without conftest.py: failing",
    "the report is written at exit": "pytest's report has no failure, and its last line says '1 failed, 3 passed in",
    "unittest's output is printed, then os._exit(0)": "the process of the tests ended before its time",
    "unittest's assertEqual is replaced (unittest)": (
        "the code under test replaces parts of the test runner: unittest.case.TestCase.assertEqual by till/money.py"
    ),
    "a new test replaces assertEqual (pytest)": "unittest.case.TestCase.assertEqual by tests/test_a.py",
    "skip is added to the red test (unittest)": (
        f"failed at the start, and no longer run: tests.test_money.MoneyTest.{RED}"
    ),
    "a plugin found by gc makes every report a pass": (
        "_pytest.config.PytestPluginManager.pytest_runtest_makereport by till/money.py"
    ),
    "a plugin found by gc calls no test": "_pytest.config.PytestPluginManager.pytest_pyfunc_call by till/money.py",
    "tests lose their code in a setup_function": "test_split_keeps_every_cent by till/money.py",
    "the result's own addFailure is replaced": "unittest.result.TestResult.addFailure by till/money.py",
    "numbers are made equal in the test": "unittest.case.TestCase.assertEqual of int by till/money.py",
    "the test gets another result": "unittest.case._Outcome.result by",
    "the Makefile": "failed at the start, and no longer run",
}


@pytest.mark.parametrize("name", sorted(SAID))
def test_a_trick_is_refused_and_the_reason_says_what_was_found(name: str, tmp_path: Path) -> None:
    outcome = play(BY_NAME[name], tmp_path / "project", **ONE_ATTEMPT)
    assert not outcome.accepted
    assert SAID[name] in outcome.reason
    assert outcome.told.traces == {}
    assert all(figure.met for figure in figures([outcome]))


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_assertions_of_node_are_watched_whatever_they_are_called_by(tmp_path: Path) -> None:
    (trick,) = [one for one in script_tricks() if one.name == "assertions found by a computed name (node)"]
    outcome = play(trick, tmp_path / "project", **ONE_ATTEMPT)
    assert not outcome.accepted
    assert "node:assert.strictEqual by another function" in outcome.reason


STUBS = """\
const assert = require('assert');
const { test } = require('node:test');
const { total } = require('../src/money.js');

test('an assertion that is stood in for, and put back', () => {
  const own = assert.strictEqual;
  assert.strictEqual = () => {};
  total([1]);
  assert.strictEqual = own;
});
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_an_assertion_of_node_that_is_put_back_is_no_trick(tmp_path: Path) -> None:
    (trick,) = [one for one in script_tricks() if one.name == "assertions found by a computed name (node)"]
    mended = MONEY.replace(
        "Array(people).fill(share)", "[...Array(people - 1).fill(share), cents - share * (people - 1)]"
    )
    honest = replace(
        trick, changed={"src/money.js": mended}, files={**trick.files, "tests/stubs.test.js": STUBS}
    )
    assert play(honest, tmp_path / "project").accepted


def test_an_object_that_equals_everything_is_for_a_reader_to_find(tmp_path: Path) -> None:
    (trick,) = [one for one in TRICKS if one.reviewer and one.command == PYTEST]
    outcome = play(trick, tmp_path / "project")
    assert outcome.accepted
    assert all(figure.met for figure in figures([outcome]))


NEW_TESTS = """\
import pytest

from till.money import split


@pytest.mark.parametrize(("cents", "people"), [(100, 3), (7, 2)])
def test_no_cent_is_lost(cents, people, purse):
    assert sum(split(cents, people)) == cents == purse(cents)
"""
CONFTEST = "import pytest\n\n\n@pytest.fixture\ndef purse():\n    return lambda cents: cents\n"


def test_an_honest_result_with_new_tests_and_configuration_is_complete_and_shown(tmp_path: Path) -> None:
    changed = {"till/money.py": MENDED_MONEY, "tests/test_cents.py": NEW_TESTS, "tests/conftest.py": CONFTEST}
    till = make_project(tmp_path, TILL, changed, test_command=PYTEST)
    told = till.solve_scripted({})
    assert (told.code, told.traces) == (0, {}), told.out + told.err
    assert [row.kind for row in told.recorded.validations] == ["baseline", "attempt", "final", "restored"]
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


def test_a_result_that_leaves_the_tests_alone_is_not_run_once_more(tmp_path: Path) -> None:
    told = make_project(tmp_path, test_command=PYTEST).solve_scripted({})
    assert told.code == 0
    said = [event.detail for event in told.recorded.events if event.kind == "restored_skipped"]
    assert said == ["the result changes none of them"]


def test_configuration_that_the_task_names_stays_in_the_last_run(tmp_path: Path) -> None:
    """The old configuration hides the red test; the user asks for the new one."""
    ini = f"[pytest]\naddopts = --deselect tests/test_money.py::MoneyTest::{RED}\n"
    files = {**TILL, "pytest.ini": ini}
    changed = {"till/money.py": MENDED_MONEY, "pytest.ini": "[pytest]\naddopts =\n"}
    task = "Splitting a bill loses cents: mend till/money.py, and let pytest.ini run all tests"
    told = make_project(tmp_path, files, changed, task=task, test_command=PYTEST).solve_scripted({})
    assert told.code == 0, told.out + told.err
    assert [row.kind for row in told.recorded.validations][-1] == "final"
    assert "  look at changed test configuration: pytest.ini" in told.out


def test_a_test_that_its_neighbours_break_is_not_unstable(tmp_path: Path) -> None:
    """It passes alone, and fails each time that all of them run."""
    spoiled = MENDED_MONEY.replace(
        '    """The same shares as debts."""\n', '    """The same shares as debts."""\n    total.calls = 1\n'
    )
    spoiled = spoiled.replace(
        "    result = 0\n    for share", '    result = getattr(total, "calls", 0)\n    for share'
    )
    told = make_project(
        tmp_path, changed={"till/money.py": spoiled}, test_command=f"{sys.executable} -m pytest -q"
    ).solve_scripted({}, **ONE_ATTEMPT)
    assert told.code == 1, told.out
    assert "newly failing: tests/test_money.py::MoneyTest::test_total" in told.recorded.ending[1]
    assert {row.kind for row in told.recorded.validations} == {"baseline", "attempt", "recheck"}
