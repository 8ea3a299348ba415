import shutil
import sys

import pytest
from tests.orchestrator.test_runs.tiny_project import Runner, Write

from clean_room_agent.artifacts.evidence import StackFrame
from clean_room_agent.orchestrator.test_runs.gate import judge_final, judge_step
from clean_room_agent.orchestrator.test_runs.results import evidence_of

UNITTEST = f"{sys.executable} -m unittest"
CASES = '''
import unittest
class A(unittest.TestCase):
    def test_ok(self): "a docstring's line"
    def test_bad(self):
        """Doc of bad."""
        print("noise ... ok")
        self.assertEqual(1, 2)
    def test_error(self): raise KeyError("k")
    @unittest.skip("why ... ok")
    def test_skipped(self): pass
    @unittest.expectedFailure
    def test_expected(self): assert 0
    @unittest.expectedFailure
    def test_unexpected(self): pass
    def test_sub(self):
        for i in range(3):
            with self.subTest(i=i): self.assertNotEqual(i, 1)
'''
RED = {
    "t.A.test_bad": "failed",
    "t.A.test_error": "error",
    "t.A.test_sub": "failed",
    "t.A.test_unexpected": "failed",
}


def test_unittest_with_v_names_every_test(write: Write, run: Runner) -> None:
    write({"t.py": CASES})
    got = run(UNITTEST + " -v t")
    rest = {"t.A.test_expected": "xfailed", "t.A.test_ok": "passed", "t.A.test_skipped": "skipped"}
    assert dict(got.report.outcomes) == RED | rest
    assert (got.report.runner, got.report.named, got.report.collected, got.report.passed) == (
        "unittest",
        True,
        7,
        1,
    )


@pytest.mark.parametrize("quiet", [False, True])
def test_unittest_names_its_tests_even_if_the_command_says_otherwise(
    quiet: bool, write: Write, run: Runner
) -> None:
    write({"t.py": CASES})
    got = run(UNITTEST + (" -q t" if quiet else " t"))
    assert (RED.items() <= got.report.outcomes.items(), got.report.named, got.report.collected) == (
        True,
        True,
        7,
    )
    messages = {test.name: test.message for test in got.failing}
    assert messages["t.A.test_bad"] == "AssertionError: 1 != 2"
    assert messages["t.A.test_error"] == "KeyError: 'k'"
    assert StackFrame(path="t.py", line=8, function="test_bad") in evidence_of(got).frames


def test_unittest_that_ends_early_or_finds_nothing_passes_nothing(write: Write, run: Runner) -> None:
    write({"t.py": "import unittest\nclass A(unittest.TestCase):\n    def test_a(self): pass\n"})
    before = run(UNITTEST + " t")
    assert judge_final(before, before, "all-pass").complete
    write({"t.py": "import os; os._exit(0)\n"})
    assert not judge_step(before, run(UNITTEST + " t")).passed
    write({"t.py": ""})
    assert judge_step(before, run(UNITTEST + " t")).reason.startswith("no tests were collected")


def test_a_command_that_nobody_can_read_is_judged_by_its_exit_code(write: Write, run: Runner) -> None:
    got = run("echo all good")
    assert (got.report.runner, got.report.whole, got.end.returncode, got.report.collected) == (
        "unknown",
        True,
        0,
        None,
    )
    assert not judge_step(got, run("echo all bad; exit 3")).passed


def test_a_command_that_does_not_exist_says_so(run: Runner) -> None:
    got = run("no_such_folder/pytest -q")
    assert not got.report.whole
    assert got.report.problem.startswith("the test command could not be started")


NODE_CASES = """
const {describe, it, test} = require('node:test'); const assert = require('assert');
describe('outer', () => {
  it('passes', () => {});
  it('fails', () => { assert.strictEqual(1, 2) });
  it.skip('later', () => {});
  describe('inner', () => { it('deep', () => {}) });
});
test('top', () => {});
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.parametrize("reporter", ["tap", "spec"])
def test_node_s_own_runner_is_read_from_both_reporters(reporter: str, write: Write, run: Runner) -> None:
    write({"a.test.js": NODE_CASES, "b.test.js": "throw new Error('at load')\n"})
    got = run(f"node --test --test-reporter {reporter}")
    assert dict(got.report.outcomes) == {
        "b.test.js": "failed",
        "outer > fails": "failed",
        "outer > inner > deep": "passed",
        "outer > later": "skipped",
        "outer > passes": "passed",
        "top": "passed",
    }
    assert (got.report.runner, got.report.named, got.report.passed) == ("node", True, 3)
    failing = {test.name: test for test in got.failing}
    assert "1 !== 2" in failing["outer > fails"].message
    assert (failing["outer > fails"].path, failing["outer > fails"].line) == ("a.test.js", 5)
