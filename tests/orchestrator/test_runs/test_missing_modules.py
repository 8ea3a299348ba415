"""Which modules tests of the base lack, and which ignored files code imports."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace
from testing.repositories import init_repository, make_repository, write
from tests.orchestrator.test_runs.tiny_project import PYTEST, RunOnce

from clean_room_agent.artifacts.evidence import FailingTest, StackFrame
from clean_room_agent.artifacts.test_results import Outcome, TestReport
from clean_room_agent.errors import ConfigError
from clean_room_agent.orchestrator.test_runs.gate import judge_step
from clean_room_agent.orchestrator.test_runs.missing_modules import (
    broken_import,
    ignored_imports,
    missing_modules,
    require_imports,
)
from clean_room_agent.orchestrator.test_runs.results import CommandEnd, TestRun

IGNORED: dict[str, tuple[Mapping[str, str], tuple[str, ...]]] = {
    "a version beside it": (
        {".gitignore": "_version.py", "src/p/__init__.py": "from ._version import v\n", "src/p/_version.py": ""},
        ("src/p/_version.py",),
    ),
    "a module of the package": (
        {".gitignore": "_version.py", "p/__init__.py": "from p import _version as v\n", "p/_version.py": ""},
        ("p/_version.py",),
    ),
    "a dotted import": (
        {".gitignore": "*_pb2.py", "a.py": "import os, gen.api_pb2 as api\n", "gen/api_pb2.py": ""},
        ("gen/api_pb2.py",),
    ),
    "names in parentheses": (
        {".gitignore": "made.py", "p/a.py": "from . import (\n    b,\n    made,\n)\n", "p/b.py": "", "p/made.py": ""},
        ("p/made.py",),
    ),
    "a package of its own": (
        {".gitignore": "generated/", "a.py": "from generated.client import C\n", "generated/client.py": "", "generated/x.py": ""},
        ("generated/client.py",),
    ),
    "a compiled module": (
        {".gitignore": "*.so", "p/a.py": "from p._fast import f\n", "p/_fast.cpython-311-x86_64-linux-gnu.so": ""},
        ("p/_fast.cpython-311-x86_64-linux-gnu.so",),
    ),
    "a script": (
        {".gitignore": "gen.ts", "src/a.ts": "import { x } from './gen'\n", "src/gen.ts": ""},
        ("src/gen.ts",),
    ),
    "data of a script": (
        {".gitignore": "made.json", "a.js": "const m = require('./made.json')\n", "made.json": "{}"},
        ("made.json",),
    ),
    "one that is included already": (
        {".gitignore": "_v.py", ".worktreeinclude": "# mine\n_v.py\n", "p/a.py": "from ._v import v\n", "p/_v.py": ""},
        (),
    ),
    "one that nothing imports": ({".gitignore": "notes.py", "a.py": "# notes\n", "notes.py": ""}, ()),
    "one of a name that is there": (
        {".gitignore": "scratch/", "util.py": "", "a.py": "import util\n", "scratch/util.py": ""},
        (),
    ),
    "what an environment holds": (
        {".gitignore": "node_modules\n.venv", "a.js": "require('./node_modules/x/i')\n", "node_modules/x/i.js": ""},
        (),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", IGNORED)
def test_an_ignored_file_is_found_where_code_imports_it(name: str, tmp_path: Path) -> None:
    files, expected = IGNORED[name]
    write(init_repository(tmp_path), files)
    assert ignored_imports(tmp_path) == expected


def run_of(message: str, *frames: str, passed: bool = False, named: str = "tests/test_a.py") -> TestRun:
    """pytest's run of a file that could not be loaded, beside another."""
    outcomes: dict[str, Outcome] = {named: "error"}
    if passed:
        outcomes["tests/test_b.py::test_b"] = "passed"
    places = tuple(StackFrame(path=path, line=3) for path in frames)
    return TestRun(
        command="pytest",
        end=CommandEnd(returncode=2),
        report=TestReport(runner="pytest", outcomes=outcomes, named=True),
        failing=(FailingTest(name=named, message=message, frames=places),),
        frames=places,
    )


VERSION = "ModuleNotFoundError: No module named 'p._version'"
PROJECT = {
    ".gitignore": "_version.py\n",
    "p/__init__.py": "from p._version import v\n",
    "tests/test_a.py": "import p\n",
    "requirements-dev.txt": "numpy>=1\n",
}


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "project", PROJECT)


def test_a_generated_file_that_no_test_can_do_without_ends_the_run(top: Path) -> None:
    write(top, {"p/_version.py": "v = 1\n"})
    with pytest.raises(ConfigError) as caught:
        require_imports(
            run_of(VERSION, "p/__init__.py", "tests/test_a.py"), top, "test_command", "p is wrong"
        )
    assert caught.value.message.endswith(f"nothing can be imported: {VERSION} (p/__init__.py, line 3)")
    assert caught.value.hint.endswith("put into .worktreeinclude, a line each: p/_version.py")


@pytest.mark.parametrize(
    ("message", "frame", "task", "is_outside"),
    [
        ("ModuleNotFoundError: No module named 'requests'", "p/a.py", "", True),
        ("ModuleNotFoundError: No module named 'numpy.linalg'", "tests/test_a.py", "", True),
        ("Error: Cannot find module 'left-pad'", "src/a.js", "", True),
        ("ModuleNotFoundError: No module named 'discount'", "tests/test_a.py", "", False),
        ("ModuleNotFoundError: No module named 'requests'", "p/a.py", "write a module requests", False),
        (VERSION, "p/__init__.py", "", False),
        ("ImportError: cannot import name 'f' from 'p' (p/__init__.py)", "tests/test_a.py", "", False),
        ("SyntaxError: invalid syntax", "p/a.py", "", False),
    ],
    ids=range(8),
)
def test_only_what_no_edit_can_make_good_ends_the_run(
    message: str, frame: str, task: str, is_outside: bool, top: Path
) -> None:
    found = missing_modules(run_of(message, frame), top, task)
    assert found is not None
    assert found.is_outside is is_outside
    assert found.text == f"nothing can be imported: {message} ({frame}, line 3)"


def test_a_conftest_that_cannot_be_imported_counts(top: Path) -> None:
    write(top, {"p/_version.py": "v = 1\n"})
    report = TestReport(runner="pytest", whole=False, problem="pytest refused its command line")
    run = TestRun(command="pytest", end=CommandEnd(returncode=4, excerpt=f"E   {VERSION}\n"), report=report)
    found = missing_modules(run, top)
    assert found is not None
    assert found.is_outside


def test_tests_that_import_by_themselves_and_skipped_ones_change_nothing(top: Path) -> None:
    write(top, {"p/_version.py": "v = 1\n"})
    alone = run_of(VERSION, "p/__init__.py", named="tests/test_a.py::test_a")
    beside = run_of(VERSION, "p/__init__.py")
    skipped: dict[str, Outcome] = {**beside.report.outcomes, "tests/test_b.py::test_b": "skipped"}
    for run in (alone, replace(beside, report=replace(beside.report, outcomes=skipped))):
        found = missing_modules(run, top)
        assert found is not None
        assert found.is_outside


def test_where_a_test_ran_nothing_is_said(top: Path) -> None:
    assert missing_modules(run_of(VERSION, "p/__init__.py", passed=True), top) is None
    assert missing_modules(run_of("assert 1 == 2", named="tests/test_a.py::test_a"), top) is None


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


def broken_run(
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
    assert broken_import(broken_run("passed"), broken_run("failed"), ("t.py::a",)) == ""


def test_a_run_without_results_tells_of_an_import_only_by_an_error_in_a_file() -> None:
    before, ended = broken_run("passed"), broken_run(whole=False, output="Killed")
    assert broken_import(before, ended, ()) == ""
    said = broken_run(whole=False, output="/lib.js:3\nSyntaxError: Unexpected end of input\n")
    assert broken_import(before, said, ()) == ""
    named = broken_run(whole=False, output="lib.js:3\nSyntaxError: Unexpected end of input\n")
    assert broken_import(before, named, ()) == (
        "the edit broke the import of lib.js: SyntaxError: Unexpected end of input (line 3); so no test runs"
    )
    assert broken_import(before, replace(named, end=replace(named.end, timed_out=True)), ()) == ""
    assert broken_import(ended, named, ()) == ""
    jest = broken_run(
        whole=False, output="SyntaxError: src/lib.js: Unexpected token (7:5)\n    at helpers.js:9\n"
    )
    assert "src/lib.js: SyntaxError: src/lib.js: Unexpected token (7:5) (line 7)" in broken_import(
        before, jest, ()
    )
