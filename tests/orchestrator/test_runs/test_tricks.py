"""Tricks that make tests look green, judged by the runs of the tests before and after: each is refused, with what was found.

All of them are played through whole runs by `python -m benchmarks.faults tampering`.
"""

import shutil
from collections.abc import Callable

import pytest
from msgspec.structs import replace
from testing.faults.tampering_python import PYTEST, RED, TRICKS, Trick
from testing.faults.tampering_script import MONEY, script_tricks
from tests.orchestrator.test_runs.tiny_project import Runner, Write

from clean_room_agent.orchestrator.test_runs.gate import FinalVerdict, judge_final
from clean_room_agent.orchestrator.test_runs.results import TestRun

Judge = Callable[[Trick], FinalVerdict]
BY_NAME = {trick.name: trick for trick in (*TRICKS, *script_tricks())}
NODE = "assertions found by a computed name (node)"
COMMANDS = {"npm test": "node --test tests/"}
"""What a package's script comes to, without the start of npm."""
SAID = {
    "os._exit(0) at import (unittest)": "unittest ended before it printed its summary",
    "sys.exit(0) at import (unittest)": "newly failing: unittest.loader._FailedTest.tests.test_money",
    "the report is written at exit": "pytest's report has no failure, and its last line says '1 failed, 3 passed in",
    "unittest's output is printed, then os._exit(0)": "the process of the tests ended early",
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


@pytest.fixture(scope="module")
def starts() -> dict[tuple[str, int], TestRun]:
    """Runs of the tests before any trick, by command and files."""
    return {}


@pytest.fixture
def judge(write: Write, run: Runner, starts: dict[tuple[str, int], TestRun]) -> Judge:
    def judge(trick: Trick) -> FinalVerdict:
        files = {path: str(text) for path, text in trick.files.items()}
        command = COMMANDS.get(trick.command, trick.command)
        key = (command, hash(frozenset(files.items())))
        if key not in starts:
            write(files)
            starts[key] = run(command)
        assert starts[key].red(), starts[key].end.output
        write({**files, **{path: text for path, text in trick.changed.items() if text is not None}})
        return judge_final(starts[key], run(command), "all-pass", planned=tuple(trick.changed))

    return judge


@pytest.mark.parametrize("name", sorted(SAID))
def test_a_trick_is_refused_and_the_reason_says_what_was_found(name: str, judge: Judge) -> None:
    verdict = judge(BY_NAME[name])
    assert not verdict.complete
    assert SAID[name] in verdict.reason


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_assertions_of_node_are_watched_whatever_they_are_called_by(judge: Judge) -> None:
    verdict = judge(BY_NAME[NODE])
    assert not verdict.complete
    assert "node:assert.strictEqual by another function" in verdict.reason


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
def test_an_assertion_of_node_that_is_put_back_is_no_trick(judge: Judge) -> None:
    trick = BY_NAME[NODE]
    mended = MONEY.replace(
        "Array(people).fill(share)", "[...Array(people - 1).fill(share), cents - share * (people - 1)]"
    )
    files = {**trick.files, "tests/stubs.test.js": STUBS}
    assert judge(replace(trick, changed={"src/money.js": mended}, files=files)).complete


def test_an_object_that_equals_everything_is_for_a_reader_to_find(judge: Judge) -> None:
    (trick,) = [one for one in TRICKS if one.reviewer and one.command == PYTEST]
    assert judge(trick).complete
