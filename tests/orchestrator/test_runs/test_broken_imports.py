import pytest
from msgspec.structs import replace
from tests.orchestrator.test_runs.tiny_project import PYTEST, RunOnce

from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.artifacts.test_results import Outcome, TestReport
from clean_room_agent.orchestrator.test_runs.broken_imports import broken_import
from clean_room_agent.orchestrator.test_runs.gate import judge_step
from clean_room_agent.orchestrator.test_runs.results import CommandEnd, TestRun

UNITTEST = "python3 -m unittest -v"
NODE = "node --test"
LIB = "def one():\n    return 0\n"
PYTHON = {
    "lib.py": LIB,
    "test_a.py": "from lib import one\ndef test_one(): assert one() == 1\n",
    "test_b.py": "def test_two(): pass\n",
}
CASES = {
    "lib.py": LIB,
    "test_a.py": "import unittest\nfrom lib import one\nclass T(unittest.TestCase):\n    def test_one(self): self.assertEqual(one(), 1)\n",
    "test_b.py": "import unittest\nclass U(unittest.TestCase):\n    def test_two(self): pass\n",
}
SCRIPTS = {
    "package.json": "{}",
    "lib.js": "module.exports = { one() { return 0 } };\n",
    "a.test.js": "const { one } = require('./lib');\nconst test = require('node:test');\ntest('one', () => { if (!one()) throw Error('no') });\n",
    "b.test.js": "const test = require('node:test');\ntest('two', () => {});\n",
}


@pytest.mark.parametrize(
    ("command", "files", "edited", "said"),
    [
        (PYTEST, PYTHON, {"lib.py": LIB + "lost\n"}, "lib.py: NameError: name 'lost' is not defined (line 3); so no test of test_a.py runs"),
        (PYTEST, PYTHON, {"lib.py": "x = (\n" + LIB}, "lib.py: SyntaxError: '(' was never closed (line 1); so no test of test_a.py runs"),
        (PYTEST, PYTHON, {"lib.py": "def two(): pass\n"}, "ImportError: cannot import name 'one' from 'lib'"),
        (PYTEST, PYTHON, {"lib.py": "import nowhere\n" + LIB}, "lib.py: ModuleNotFoundError: No module named 'nowhere' (line 1)"),
        (PYTEST, PYTHON, {"lib.py": LIB + "raise ValueError('no')\n"}, "lib.py: ValueError: no (line 3)"),
        (PYTEST, PYTHON | {"conftest.py": "import lib\n"}, {"lib.py": LIB + "lost\n"}, "lib.py: NameError: name 'lost' is not defined (line 3); so no test runs"),
        (UNITTEST, CASES, {"lib.py": LIB + "lost\n"}, "lib.py: NameError: name 'lost' is not defined (line 3); so no test of test_a.py runs"),
        (UNITTEST, CASES, {"lib.py": "def f(:\n"}, "lib.py: SyntaxError: invalid syntax (line 1)"),
        (NODE, SCRIPTS, {"lib.js": SCRIPTS["lib.js"] + "lost;\n"}, "lib.js: ReferenceError: lost is not defined (line 2); so no test of a.test.js runs"),
        (NODE, SCRIPTS, {"lib.js": SCRIPTS["lib.js"] + "const x = ;\n"}, "lib.js: SyntaxError: Unexpected token ';' (line 2)"),
    ],
)  # fmt: skip
def test_a_broken_import_is_told_with_file_error_and_line(
    run_once: RunOnce, command: str, files: dict[str, str], edited: dict[str, str], said: str
) -> None:
    before, after = run_once(command, files), run_once(command, files | edited)
    verdict = judge_step(before, after)
    assert not verdict.passed
    told = broken_import(before, after, verdict.newly_failing)
    assert told.startswith("the edit broke the import of ")
    assert said in told


def run_of(
    outcome: Outcome = "passed", *, whole: bool = True, output: str = "", timed_out: bool = False
) -> TestRun:
    failing = (
        FailingTest(name="t.py::a", message="NameError: name 'x' is not defined", path="a.py", line=1),
    )
    return TestRun(
        command="pytest",
        end=CommandEnd(returncode=1, excerpt=output, timed_out=timed_out),
        report=TestReport(
            runner="pytest", outcomes={"t.py::a": outcome} if whole else {}, named=True, whole=whole
        ),
        failing=failing if outcome == "failed" else (),
    )


def test_a_test_that_fails_by_such_an_error_while_it_runs_is_no_broken_import() -> None:
    assert broken_import(run_of("passed"), run_of("failed"), ("t.py::a",)) == ""


def test_a_run_without_results_tells_of_an_import_only_by_an_error_in_a_file() -> None:
    before, ended = run_of("passed"), run_of(whole=False, output="Killed")
    assert broken_import(before, ended, ()) == ""
    said = run_of(whole=False, output="/lib.js:3\nSyntaxError: Unexpected end of input\n")
    assert broken_import(before, said, ()) == ""
    named = run_of(whole=False, output="lib.js:3\nSyntaxError: Unexpected end of input\n")
    assert broken_import(before, named, ()) == (
        "the edit broke the import of lib.js: SyntaxError: Unexpected end of input (line 3); so no test runs"
    )
    assert broken_import(before, replace(named, end=replace(named.end, timed_out=True)), ()) == ""
    assert broken_import(ended, named, ()) == ""
    jest = run_of(
        whole=False, output="SyntaxError: src/lib.js: Unexpected token (7:5)\n    at helpers.js:9\n"
    )
    assert "src/lib.js: SyntaxError: src/lib.js: Unexpected token (7:5) (line 7)" in broken_import(
        before, jest, ()
    )
