"""Runs of tiny projects that die, or do not come to all of their tests, and what becomes known of their tests."""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest
from testing.runs.memory_commits import REPOSITORY, MemoryHistory, MemoryTree
from testing.runs.memory_run import Noted, pytest_run
from tests.orchestrator.test_runs.tiny_project import PYTEST

from clean_room_agent.artifacts.test_results import TestReport
from clean_room_agent.git.worktree import Worktree
from clean_room_agent.orchestrator.run_config import TestingConfig
from clean_room_agent.orchestrator.test_runs.base_tests import completed, declares_tests, written_tests
from clean_room_agent.orchestrator.test_runs.command_runner import CommandRunner, TestWorktree
from clean_room_agent.orchestrator.test_runs.results import TestRun

UNITTEST = f"{sys.executable} -m unittest"
Complete = Callable[[str, Mapping[str, str]], TestRun]


class FolderRunner(CommandRunner, kw_only=True):
    """Runs in a folder that nothing resets."""

    def checkout(self, commit: str) -> None:
        del commit


@pytest.fixture
def runner(project: Path, tmp_path: Path) -> FolderRunner:
    inherited = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    inherited |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_DEBUG_TEMPROOT": str(tmp_path)}
    return FolderRunner(
        config=msgspec.convert({"test_command": "unset"}, TestingConfig),
        tree=TestWorktree(worktree=Worktree(path=project, git_dir=project, repo=REPOSITORY, submodules=())),
        inherited=inherited,
        report=tmp_path / "run" / "report.xml",
        observer=Noted(),
    )


@pytest.fixture
def complete(runner: FolderRunner, project: Path) -> Complete:
    def complete(command: str, files: Mapping[str, str]) -> TestRun:
        for name, text in files.items():
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_text(text, encoding="utf-8")
        runner.config = msgspec.structs.replace(runner.config, test_command=command)
        history = MemoryHistory()
        tree = MemoryTree(repo=REPOSITORY, commit=history.add(files), history=history)
        return completed(runner, runner.run_all("baseline"), tree.commit, tree, lambda _: None)

    return complete


DIES = "import os, signal, unittest\n\n\nclass T(unittest.TestCase):\n"
LINES = {
    "a": "pass",
    "b": "os.abort()",
    "c": "self.fail()",
    "d": "self.skipTest('not here')",
    "e": "os._exit(0)",
    "f": "pass",
}
DEADLY = DIES + "".join(f"    def test_{name}(self):\n        {line}\n" for name, line in LINES.items())
OUTCOMES = {"a": "passed", "b": "error", "c": "failed", "d": "skipped", "e": "error", "f": "passed"}


def test_of_a_pytest_that_dies_twice_each_outcome_is_known(complete: Complete) -> None:
    run = complete(PYTEST, {"test_t.py": DEADLY})
    assert run.report.outcomes == {f"test_t.py::T::test_{name}": out for name, out in OUTCOMES.items()}
    assert (run.report.whole, run.report.counted, run.report.named) == (False, True, True)
    assert (run.report.passed, run.report.collected) == (2, 6)
    said = {test.name: test.message for test in run.failing}
    assert said["test_t.py::T::test_b"] == "the process of the tests ended in it"
    assert set(said) == {f"test_t.py::T::test_{name}" for name in "bce"}


@pytest.mark.parametrize("options", [" -v", " discover", " test_t"])
def test_of_a_unittest_that_dies_twice_each_outcome_is_known(complete: Complete, options: str) -> None:
    run = complete(f"{UNITTEST}{options}", {"test_t.py": DEADLY})
    assert run.report.outcomes == {f"test_t.T.test_{name}": out for name, out in OUTCOMES.items()}
    assert run.report.counted


def test_a_command_that_starts_pytest_by_a_script_is_completed_as_well(complete: Complete) -> None:
    files = {"test_t.py": DEADLY, "Makefile": f"test:\n\t@{PYTEST}\n"}
    run = complete("make test", files)
    assert run.report.outcomes == {f"test_t.py::T::test_{name}": out for name, out in OUTCOMES.items()}


OTHER = "def test_x():\n    pass\n"
WRITTEN = "import os\n\nos.abort()\n\n\ndef test_a():\n    pass\n\n\ndef test_b():\n    pass\n"


def test_a_file_that_ends_the_process_has_the_tests_of_its_text(complete: Complete) -> None:
    run = complete(PYTEST, {"sub/test_dead.py": WRITTEN, "test_other.py": OTHER})
    assert run.report.outcomes == {"sub/test_dead.py": "error", "test_other.py::test_x": "passed"}
    assert run.report.written == {"sub/test_dead.py::test_a": True, "sub/test_dead.py::test_b": True}
    assert run.report.counted


def test_a_file_that_ends_the_workers_of_xdist_has_the_tests_of_its_text(complete: Complete) -> None:
    run = complete(f"{PYTEST} -p xdist -n 1", {"test_dead.py": WRITTEN, "test_other.py": OTHER})
    assert run.report.outcomes == {"test_dead.py": "error", "test_other.py::test_x": "passed"}
    assert run.report.problem == "the process of the tests ended in it: test_dead.py"
    assert (run.report.whole, len(run.report.written)) == (False, 2)


def test_tests_that_the_command_names_are_all_that_count(complete: Complete) -> None:
    run = complete(f"{PYTEST} test_t.py::T::test_a test_t.py::T::test_b", {"test_t.py": DEADLY})
    assert run.report.outcomes == {"test_t.py::T::test_a": "passed", "test_t.py::T::test_b": "error"}


def test_a_package_that_ends_unittest_has_the_tests_of_its_modules(complete: Complete) -> None:
    files = {
        "tests/__init__.py": "import os\n\nos.abort()\n",
        "tests/test_a.py": f"{DIES}    def test_q(self): ...\n",
    }
    run = complete(UNITTEST, files)
    assert run.report.written == {"tests/test_a.py::T::test_q": True}
    assert run.report.counted


def test_a_module_that_ends_unittest_has_the_tests_of_its_text(complete: Complete) -> None:
    dead = f"import os\n\nos.abort()\n{DIES}    def test_a(self): ...\n"
    alive = f"{DIES}    def test_x(self): ...\n"
    run = complete(UNITTEST, {"test_dead.py": dead, "test_other.py": alive})
    assert run.report.outcomes == {
        "test_other.T.test_x": "passed",
        "unittest.loader._FailedTest.test_dead": "error",
    }
    assert run.report.written == {"test_dead.py::T::test_a": True}


def test_a_file_that_cannot_be_loaded_has_the_tests_of_its_text(complete: Complete) -> None:
    run = complete(PYTEST, {"test_dead.py": WRITTEN.replace("os.abort()", "import gone"), "test_o.py": OTHER})
    assert run.report.whole
    assert run.report.outcomes == {"test_dead.py": "error", "test_o.py::test_x": "passed"}
    assert set(run.report.written) == {"test_dead.py::test_a", "test_dead.py::test_b"}


def test_a_folder_whose_conftest_cannot_be_loaded_has_the_tests_of_its_files(complete: Complete) -> None:
    run = complete(PYTEST, {"sub/conftest.py": "import gone\n", "sub/test_s.py": OTHER, "test_o.py": OTHER})
    assert run.report.whole
    assert run.report.written == {"sub/test_s.py::test_x": True}


def test_where_nothing_is_found_all_test_files_are_read(complete: Complete) -> None:
    run = complete(PYTEST, {"conftest.py": "import os\n\nos.abort()\n", "test_o.py": OTHER})
    assert (run.report.whole, run.report.counted) == (False, True)
    assert run.report.written == {"test_o.py::test_x": True}


def test_what_no_text_shows_stays_unknown(complete: Complete) -> None:
    run = complete(PYTEST, {"test_o.py": "import os\n\nos.abort()\n"})
    assert (run.report.counted, run.report.uncounted) == (True, ("test_o.py",))
    run = complete(PYTEST, {"conftest.py": "import os\n\nos.abort()\n", "test_o.py": ""})
    assert not run.report.counted


def test_a_run_that_is_whole_is_left_as_it_is(complete: Complete) -> None:
    run = complete(PYTEST, {"test_o.py": OTHER})
    assert (run.report.counted, dict(run.report.written)) == (False, {})


def test_no_option_of_pytest_hides_what_comes_after_a_failure(complete: Complete) -> None:
    run = complete(f"{PYTEST} --maxfail=1", {"test_o.py": f"def test_a():\n    assert False\n\n\n{OTHER}"})
    assert run.report.outcomes == {"test_o.py::test_a": "failed", "test_o.py::test_x": "passed"}


def test_no_option_of_unittest_hides_what_comes_after_a_failure(complete: Complete) -> None:
    lines = f"{DIES}    def test_a(self):\n        self.fail()\n\n    def test_x(self): ...\n"
    run = complete(f"{UNITTEST} -f", {"test_o.py": lines})
    assert run.report.outcomes == {"test_o.T.test_a": "failed", "test_o.T.test_x": "passed"}


def test_a_run_that_a_test_ends_is_completed(complete: Complete) -> None:
    run = complete(PYTEST, {"test_o.py": f"def test_a():\n    raise KeyboardInterrupt\n\n\n{OTHER}"})
    assert run.report.outcomes == {"test_o.py::test_a": "error", "test_o.py::test_x": "passed"}


INNER = """\
import io, unittest

class Inner(unittest.TestCase):
    def runTest(self):
        self.fail()

class T(unittest.TestCase):
    def test_a(self):
        suite = unittest.TestSuite([Inner(), Inner()])
        result = unittest.TextTestRunner(stream=io.StringIO(), failfast=True).run(suite)
        self.assertEqual(result.testsRun, 1)

    def test_b(self):
        result = unittest.TestResult()
        result.startTest(object())
        result.addSuccess(object())
        result.stopTest(object())

def load_tests(loader, tests, pattern):
    return loader.loadTestsFromTestCase(T)
"""


def test_tests_that_run_tests_themselves_are_left_alone(complete: Complete) -> None:
    run = complete(UNITTEST, {"test_o.py": INNER})
    assert run.report.outcomes == {"test_o.T.test_a": "passed", "test_o.T.test_b": "passed"}
    assert run.report.whole


def test_tests_of_a_class_that_is_not_set_up_are_known(complete: Complete) -> None:
    set_up = "    @classmethod\n    def setUpClass(cls):\n        {}\n\n    def test_{}(self): ...\n\n\n"
    lines = "import unittest\n\n\n"
    for name, line in (("Broken", "1 / 0"), ("Elsewhere", "raise unittest.SkipTest('no')")):
        lines += f"class {name}(unittest.TestCase):\n{set_up.format(line, name.lower())}"
    run = complete(UNITTEST, {"test_o.py": lines})
    assert run.report.whole
    assert run.report.outcomes.get("test_o.Broken.test_broken") == "error"
    assert "test_o.Elsewhere.test_elsewhere" not in run.red()


def test_a_script_file_that_cannot_be_loaded_is_named(runner: FolderRunner) -> None:
    history = MemoryHistory()
    tree = MemoryTree(repo=REPOSITORY, commit=history.add({"a.test.js": ""}), history=history)
    run = pytest_run({"a.test.js": "error", "b.test.js > b": "passed"}, command="jest")
    run = msgspec.structs.replace(run, report=msgspec.structs.replace(run.report, runner="jest"))
    found = completed(runner, run, tree.commit, tree, lambda _: None)
    assert found.report.uncounted == ("a.test.js",)


def test_an_incomplete_run_of_another_runner_stays_unknown(runner: FolderRunner) -> None:
    history = MemoryHistory()
    tree = MemoryTree(repo=REPOSITORY, commit=history.add({"a.test.js": ""}), history=history)
    run = msgspec.structs.replace(pytest_run({}), report=TestReport(runner="mocha", whole=False))
    assert completed(runner, run, tree.commit, tree, lambda _: None) is run


@pytest.mark.parametrize("ending", ["sys.exit(0)", "pytest.exit('enough')"])
def test_a_file_that_ends_pytest_while_it_is_loaded_hides_no_other(complete: Complete, ending: str) -> None:
    exits = f"import sys\nimport pytest\n{ending}\ndef test_x(): pass\n"
    run = complete(
        PYTEST, {"test_a.py": "def test_a(): pass\n", "test_b.py": exits, "test_c.py": "def test_c(): pass\n"}
    )
    assert run.report.outcomes == {
        "test_a.py::test_a": "passed",
        "test_b.py": "error",
        "test_c.py::test_c": "passed",
    }
    assert run.report.written == {"test_b.py::test_x": True}
    assert run.report.whole or run.report.counted


SOURCE = b'''\
"""def test_in_a_text(): ..."""
import unittest

import pytest


def test_plain():
    assert True


async def test_later(): ...


@pytest.mark.parametrize("case", [1, 2])
def test_cases(case): ...


@pytest.mark.skipif(True, reason="not here")
def test_somewhere_else(): ...


@pytest.fixture
def test_client(): ...


def helper(): ...


class TestPlain:
    def test_a(self): ...
    def other(self): ...


class TestHeld:
    def __init__(self): ...
    def test_b(self): ...


class Mixin:
    def test_c(self): ...


class MoneyCase(unittest.TestCase):
    def test_d(self): ...

    @unittest.expectedFailure
    def test_e(self): ...


@unittest.skip("later")
class LaterCase(unittest.TestCase):
    def test_f(self): ...


class BoundTest(unittest.TestCase):
    def setUp(self):
        self.skipTest("not here")

    def test_g(self): ...
'''


def test_tests_are_found_in_the_text_and_those_that_may_skip_are_told_apart() -> None:
    assert written_tests("t.py", SOURCE, unittest=False) == {
        "t.py::test_plain": True,
        "t.py::test_later": True,
        "t.py::test_cases": True,
        "t.py::test_somewhere_else": False,
        "t.py::TestPlain::test_a": True,
        "t.py::MoneyCase::test_d": True,
        "t.py::MoneyCase::test_e": False,
        "t.py::LaterCase::test_f": False,
        "t.py::BoundTest::test_g": False,
    }


def test_unittest_collects_cases_alone() -> None:
    found = written_tests("t.py", SOURCE, unittest=True)
    assert sorted(found) == [
        "t.py::BoundTest::test_g",
        "t.py::LaterCase::test_f",
        "t.py::MoneyCase::test_d",
        "t.py::MoneyCase::test_e",
    ]


@pytest.mark.parametrize(
    "head", ["pytestmark = pytest.mark.skip", 'pytest.importorskip("numpy")', "raise unittest.SkipTest"]
)
def test_a_module_that_skips_itself_may_skip_each_of_its_tests(head: str) -> None:
    found = written_tests("t.py", f"{head}\ndef test_a(): ...\n".encode(), unittest=False)
    assert found == {"t.py::test_a": False}


@pytest.mark.parametrize(
    ("path", "source", "declares"),
    [
        ("checks/money.py", b"def test_a(): ...\n", True),
        ("till/money.py", b"def split(): ...\n", False),
        ("checks/money.js", b"describe('money', () => {\n  it.each([1])('adds', () => {});\n});\n", True),
        ("src/money.ts", b"export const it = 1;\n", False),
        ("README.md", b"test(1)\n", False),
    ],
)
def test_a_text_declares_tests_whatever_its_file_is_called(path: str, source: bytes, declares: bool) -> None:
    assert declares_tests(path, source) is declares


def test_a_syntax_error_hides_no_test_around_it() -> None:
    source = b"def test_a():\n    return (\n\ndef test_b():\n    assert True\n"
    assert "t.py::test_a" in written_tests("t.py", b"import = 1\n\ndef test_a(): ...\n", unittest=False)
    assert written_tests("t.py", source, unittest=False)
    assert written_tests("t.js", b"test('a', () => {});", unittest=False) == {}
