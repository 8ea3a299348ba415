"""What the guard in the processes of a test command sees, and that it is not in their way."""

import getpass
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.orchestrator.test_runs.tiny_project import PYTEST, Runner, RunOnce, Write

from clean_room_agent.artifacts.test_results import Reading
from clean_room_agent.errors import ConfigError
from clean_room_agent.languages.ecmascript import script_runner
from clean_room_agent.languages.python import test_log
from clean_room_agent.languages.test_runner import MAX_BYTES, MAX_FILES, EndedCommand, guard_folder
from clean_room_agent.languages.test_runners import runner_named
from clean_room_agent.orchestrator.run_config import TestingConfig
from clean_room_agent.orchestrator.test_runs.command_runner import require_judging
from clean_room_agent.orchestrator.test_runs.gate import judge_step
from clean_room_agent.orchestrator.test_runs.test_commands import (
    Watched,
    clear_guard_folder,
    read_watched,
)

UNITTEST = f"{sys.executable} -m unittest"
TEST = "import unittest\nfrom value import value\nclass A(unittest.TestCase):\n    def test_a(self): self.assertEqual(value(), 1)\n"
VALUE = "def value(): return 1\n"
GREEN = {"test_a.py": TEST, "value.py": VALUE}
MEDDLE = "import unittest\nunittest.TestCase.assertEqual = lambda *args: None\n"
COMMANDS = {"pytest": PYTEST, "unittest": UNITTEST, "xdist": f"{PYTEST} -p xdist -n 1"}
WITHOUT_WORKERS = {"pytest": "pytest", "unittest": "unittest", "xdist": "pytest"}
"""By runner, one that comes to the same and starts sooner."""


def test_a_run_deletes_nobody_elses_temporary_folders(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """It seemed to hang at its end while it deleted what the suite's own runs had left."""
    kept = [tmp_path / f"pytest-of-{getpass.getuser()}" / f"pytest-{number}" for number in range(5)]
    for folder in kept:
        folder.mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    write({"test_a.py": TEST, "value.py": VALUE})
    run: Runner = request.getfixturevalue("run")
    got = run(COMMANDS["xdist"])
    assert (got.report.passed, got.watched) == (1, Watched(ended=True)), got.end.output
    assert [folder.name for folder in kept if not folder.is_dir()] == []


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_code_that_replaces_a_part_of_the_runner_is_named(
    name: str, write: Write, run: Runner, run_once: RunOnce
) -> None:
    before = run_once(COMMANDS[WITHOUT_WORKERS[name]], GREEN)
    assert (before.report.passed, before.watched) == (1, Watched(ended=True)), before.end.output
    write({**GREEN, "value.py": MEDDLE + "def value(): return 2\n"})
    after = run(COMMANDS[name])
    assert after.watched.replaced == (("unittest.case.TestCase.assertEqual", "value.py"),)
    verdict = judge_step(before, after)
    assert not verdict.passed
    assert (
        "replaces parts of the test runner: unittest.case.TestCase.assertEqual by value.py" in verdict.reason
    )
    assert judge_step(after, after).passed, "what was so before is not the result's doing"


STOP = "import unittest.case as case\n"
CASE = "import unittest\ncase = unittest.TestCase\n"
BY_LIBRARY = {
    "an exception of unittest's own": (STOP, "raise case._ShouldStop", "unittest.case._ShouldStop"),
    "a kind of it": (
        STOP + "class Stop(case._ShouldStop):\n    def __init__(self): pass\n",
        "raise Stop",
        "unittest.case._ShouldStop",
    ),
    "another assertion": (
        CASE + "case.assertEqual = case.assertIsNotNone\n",
        "return 2",
        "unittest.case.TestCase.assertEqual",
    ),
    "another assertion's code": (
        CASE + "case.assertEqual.__code__ = case.assertIsNotNone.__code__\n",
        "return 2",
        "unittest.case.TestCase.assertEqual",
    ),
    "another failure": (
        STOP + "case.TestCase.failureException = case._ShouldStop\n",
        "return 2",
        "unittest.case.TestCase.failureException",
    ),
    "a builtin for the call of a test": (
        CASE + "case._callTestMethod = id\n",
        "return 2",
        "unittest.case.TestCase._callTestMethod",
    ),
    "a builtin for a function of the module": (
        STOP + "case._addError = print\n",
        "return 2",
        "unittest.case._addError",
    ),
    "for the time of the tests alone": (
        CASE + "import atexit\natexit.register(setattr, case, 'assertEqual', case.assertEqual)\n"
        "case.assertEqual = case.assertIsNotNone\n",
        "return 2",
        "unittest.case.TestCase.assertEqual",
    ),
}


@pytest.mark.parametrize(
    ("way", "runner"), [*((way, "unittest") for way in sorted(BY_LIBRARY)), ("another failure", "pytest")]
)
def test_a_part_of_the_runner_is_known_by_what_it_is_not_by_its_file(
    way: str, runner: str, write: Write, run: Runner
) -> None:
    head, body, name = BY_LIBRARY[way]
    write({"test_a.py": TEST, "value.py": f"{head}\ndef value():\n    {body}\n"})
    after = run(COMMANDS[runner])
    assert name in [part for part, _ in after.watched.replaced], after.end.output


def test_a_builtin_for_pytest_s_run_of_a_test_is_named(write: Write, run: Runner) -> None:
    head = "import sys\nsys.modules['_pytest.unittest'].TestCaseFunction.runtest = staticmethod(list)\n"
    write({"test_a.py": TEST, "value.py": head + "def value(): return 2\n"})
    assert run(PYTEST).watched.replaced == (("_pytest.unittest.TestCaseFunction.runtest", "builtins.list"),)


CHECKED = "import unittest\nimport value\nimport statistics\nfrom checks import same\n\n\nclass A(unittest.TestCase):\n    def test_a(self): same(value.value(), 1)\n"
OTHERS: Mapping[str, tuple[str, str]] = {
    "Python's own, by sys.path": (
        "import sys\nsys.path.insert(0, sys.path[0] + '/vendor' if sys.path[0] else 'vendor')\n",
        "the module statistics",
    ),
    "a fake in sys.modules": (
        "import sys, types\nsys.modules['checks'] = types.SimpleNamespace(same=max)\n",
        "the module checks",
    ),
    "an import hook": (
        "import importlib.util as util, sys\nclass Finder:\n    find_spec = lambda self, name, *more: name == 'checks' and util.spec_from_file_location(name, 'other.py') or None\nsys.meta_path.insert(0, Finder())\n",
        "the module checks",
    ),
    "for the time of the tests alone": (
        "import atexit, sys, types\nsys.modules['checks'] = types.SimpleNamespace(same=max)\natexit.register(sys.modules.pop, 'checks')\n",
        "the module checks",
    ),
    "a fake that says where it is from": (
        "import sys, types\nfake = sys.modules['checks'] = types.ModuleType('checks')\nfake.__file__, fake.same = 'checks.py', max\n",
        "the module checks",
    ),
    "a function of Python's own": (
        "import statistics\nstatistics.mean = lambda *args: 1\n",
        "statistics.mean",
    ),
    "a method of a class of Python's own": (
        "import fractions\nfractions.Fraction.__eq__ = lambda *args: True\n",
        "fractions.Fraction.__eq__",
    ),
    "an object that is called": (
        "import statistics\nclass Mean:\n    def __call__(self, *args): return 1\nstatistics.mean = Mean()\n",
        "statistics.mean",
    ),
    "a builtin function for one of Python's modules in C": (
        "import math\nmath.isclose = max\n",
        "math.isclose",
    ),
    "a builtin class for one of Python's modules in C": (
        "import math\nmath.fsum = bool\n",
        "math.fsum",
    ),
    "a builtin function for one of Python's modules": (
        "import statistics\nstatistics.mean = max\n",
        "statistics.mean",
    ),
    "a method of a helper": (
        "import tests.other\ntests.other.Other.same = lambda *args: 1\n",
        "tests.other.Other.same",
    ),
    "a mock of a helper": (
        "from unittest import mock\nmock.patch('tests.other.same').start()\n",
        "tests.other.same",
    ),
    "a function of a helper": (
        "import tests.other\ntests.other.same = lambda *args: 1\n",
        "tests.other.same",
    ),
}
"""Code under test that puts a module in the place of one that a test imports after it."""


IN_PYTEST = ("Python's own, by sys.path", "a fake in sys.modules", "a mock of a helper")
"""The guard is the same in both runners; pytest loads modules in its own way, and takes four times as long to start."""


@pytest.mark.parametrize(
    ("way", "runner"),
    [*((way, "unittest") for way in sorted(OTHERS)), *((way, "pytest") for way in IN_PYTEST)],
)
def test_a_module_in_the_place_of_another_is_named(way: str, runner: str, write: Write, run: Runner) -> None:
    head, name = OTHERS[way]
    same = "def same(a, b): assert a == b\n"
    weak = {
        "vendor/statistics.py": "",
        "other.py": "def same(a, b): pass\n",
        "tests/other.py": same + "class Other:\n    def same(self, a, b): pass\n",
    }
    write({"test_a.py": CHECKED, "checks.py": same, "value.py": f"{head}def value(): return 1\n", **weak})
    after = run(COMMANDS[runner])
    assert name in [part for part, _ in after.watched.replaced], after.end.output


def test_code_that_follows_each_line_of_a_test_is_named(write: Write, run: Runner) -> None:
    head = "import sys\nsys.settrace(lambda *args: None)\n"
    write({**GREEN, "value.py": head + VALUE})
    assert run(UNITTEST).watched.replaced == (("sys.settrace", "value.py"),)


HONEST_PLUGINS = {
    "conftest.py": "import functools\npytest_plugins = ['helping', 'ready']\n\n\n"
    "class Own:\n    def pytest_runtest_setup(self, item): pass\n\n\n"
    "def pytest_configure(config): config.pluginmanager.register(Own())\n\n\n"
    "def pytest_collection_modifyitems(items):\n"
    "    for item in items:\n        item.obj = functools.partial(item.obj)\n",
    "helping.py": "def pytest_runtest_setup(item): pass\n",
    "ready.py": "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef ready(monkeypatch): yield\n",
}
"""A conftest's own, one that it names, one of fixtures alone; and a test that stands for another."""


def test_a_plugin_that_pytest_was_told_to_load_is_no_trick(write: Write, run: Runner) -> None:
    write({"test_a.py": "def test_a(): pass\n", **HONEST_PLUGINS})
    got = run(PYTEST)
    assert (got.report.passed, got.watched) == (1, Watched(ended=True)), got.end.output


INNER = f"import os, subprocess\ndef test_a(): subprocess.run(['{sys.executable}', '-m', 'unittest', 'gone'], check=False)\n"
HONEST = {
    "test_kinds.py": "import unittest\n\n\nclass Sum: pass\n\n\nclass Kinds(unittest.TestCase):\n"
    "    def setUp(self):\n"
    "        self.addTypeEqualityFunc(Sum, lambda *args, **more: None)\n"
    "        self.maxDiff = None\n"
    "        self.shortDescription = lambda: None\n"
    "    def test_a(self): self.assertEqual(Sum(), Sum())\n",
    "test_undone.py": "import contextlib, io, sys, unittest\n"
    "from unittest import mock\n"
    "class Undone(unittest.IsolatedAsyncioTestCase):\n"
    "    @mock.patch('builtins.open')\n"
    "    async def test_a(self, opened):\n"
    "        with contextlib.redirect_stdout(io.StringIO()), mock.patch('sys.exit'), self.subTest(a=1):\n"
    "            self.addTypeEqualityFunc(str, print); sys.excepthook = print\n",
    "test_starting.py": INNER,
    "test_modules.py": "import helpers, inner.old, inner.lazy, inner.space.part\n"
    "def test_a(): assert inner.old.A == inner.lazy.A == inner.space.part.A == helpers.A\n",
    "deep/test_deep.py": "import sys\nsys.path.insert(0, 'vendor')\nimport vendored\ndef test_a(): assert vendored.A\n",
    "test_mocked.py": "from unittest import mock\nmock.patch('multiprocessing.Process').start()\ndef test_a(): pass\n",
    "test_patched.py": "import json, tests.other\nfrom helpers import hook\ndef test_a(): hook(); json.own = lambda: 1\n",
    "tests/other.py": "from helpers import hook as same\nfrom helpers import decorated\n@decorated\ndef other(): pass\n",
    "helpers.py": "A = 1\nimport sys, warnings\ndef hook(*args): sys.excepthook = warnings.showwarning = hook\n"
    "def decorated(given): return lambda: given\n",
    "vendor/vendored.py": "A = 1\n",
    "inner/__init__.py": "import sys\nfrom inner import new\nold = sys.modules['inner.old'] = new\n",
    "inner/new.py": "A = 1\n",
    "inner/lazy.py": "import sys\nclass Lazy: A = 1\nsys.modules[__name__] = Lazy()\n",
    "inner/space/part.py": "A = 1\n",
    "gone.py": "import os; os._exit(0)\n",
    "sitecustomize.py": "import sys\nsys.ours = 1\n",
    "test_own.py": "import sys\ndef test_a(): assert sys.ours\n",
}
"""Test cases that say how their own kinds are compared, and that undo what they do with a runner's parts; a test that starts a
process which is not taken for the runner; modules under other names, in other places and of no file; and a `sitecustomize` of the project's own, which is loaded.
"""


@pytest.mark.parametrize(("name", "count"), [("pytest", 8), ("unittest", 2)])
def test_what_honest_tests_do_is_no_trick(name: str, count: int, write: Write, run: Runner) -> None:
    write(HONEST)
    got = run(COMMANDS[name])
    assert (got.report.passed, got.red(), got.watched) == (count, frozenset(), Watched(ended=True)), (
        got.end.output
    )


@pytest.mark.parametrize("name", ["pytest", "unittest"])
def test_a_runner_that_ended_early_is_known_whatever_it_left(
    name: str, write: Write, run: Runner, run_once: RunOnce
) -> None:
    before = run_once(COMMANDS[name], GREEN)
    write({**GREEN, "value.py": "import atexit, os\natexit.register(os._exit, 0)\n" + VALUE})
    after = run(COMMANDS[name])
    assert (after.report.passed, after.end.returncode, after.watched.ended) == (1, 0, False)
    assert "ended early" in judge_step(before, after).reason
    assert judge_step(after, after).passed, "some projects' runners always end so"


def test_a_report_that_its_own_terminal_contradicts_is_not_believed(write: Write, run: Runner) -> None:
    forge = (
        "import atexit, os\n"
        "path = os.path.join(os.environ['CRA_TEST_REPORTS'], f'python-{os.getpid()}.xml')\n"
        'good = \'<testsuites><testcase classname="test_a" name="test_a" file="test_a.py"/></testsuites>\'\n'
        "atexit.register(lambda: open(path, 'w').write(good))\n"
    )
    write({"test_a.py": forge + "def test_a(): assert 0\n"})
    got = run(PYTEST)
    assert not got.report.whole
    assert "its last line says '1 failed" in got.report.problem


@pytest.mark.parametrize("second", ["b", "a"])
def test_processes_that_are_not_seen_to_start_leave_one_report_and_are_told_of(
    second: str, write: Write, run: Runner
) -> None:
    both = f"PYTHONPATH=. {PYTEST} {'ab'.replace(second, '')}; PYTHONPATH=. {PYTEST} {second}"
    write(
        {"a/test_a.py": "def test_a(): assert 0\n", "b/test_b.py": "def test_b(): pass\n", "check.sh": both}
    )
    assert run(both).report.outcomes == {"a/test_a.py::test_a": "failed", "b/test_b.py::test_b": "passed"}
    got = run("sh check.sh")
    assert (got.report.whole, got.report.outcomes) == (False, {}), "no run begins on such a baseline"
    assert got.report.problem == (
        "pytest ran 2 times and left one report: each later one takes the place of that before. The command sets PYTHONPATH, it seems: "
        "let it keep what is there, as in PYTHONPATH=src:$PYTHONPATH"
    )
    with pytest.raises(ConfigError, match="pytest ran 2 times and left one report"):
        require_judging(got, TestingConfig(test_command=got.command), "test_command", sandboxed=False)
    assert run(f"PYTHONPATH=. {PYTEST}").report.whole


def test_a_unittest_that_dies_beside_a_pytest_that_passes_is_told_of(write: Write, run: Runner) -> None:
    write({"a/test_a.py": "", "b/test_b.py": "def test_b(): pass\n"})
    got = run(f"{sys.executable} -m unittest discover -s none; {PYTEST} b")
    assert not got.report.whole
    assert got.report.problem == "unittest ended before it printed its summary"


@pytest.mark.parametrize("words", ["", "discover", "discover -s checks", "discover -s checks -p check_*.py"])
def test_unittest_asked_for_names_runs_the_same_tests(words: str, write: Write, run: Runner) -> None:
    case = "import unittest\nclass A(unittest.TestCase):\n    def test_a(self): pass\n"
    write({"test_b.py": case, "checks/__init__.py": "", "checks/test_a.py": case, "checks/check_a.py": case})
    got = run(f"{sys.executable} -m unittest {words}")
    assert (got.report.whole, got.report.named, got.red()) == (True, True, frozenset()), got.end.output
    assert got.report.passed == (1 if "-s" in words else 2)


def read_node(report: Path) -> Reading | None:
    """What Node's runner left beside the report."""
    node = runner_named("node")
    assert node is not None
    return node.read(EndedCommand(command="", returncode=0, text="", report=report, cwd=report.parent))


def test_of_what_lies_in_the_guards_folder_a_bounded_part_is_read(tmp_path: Path) -> None:
    report = tmp_path / "results.xml"
    clear_guard_folder(report)
    folder = guard_folder(report)
    for number in range(3):
        (folder / f"python-{number}.started").touch()
        (folder / f"python-{number}.ended").write_text(f"[{' ' * (MAX_BYTES // 2)}]")
        (folder / f"node-{number}.started").touch()
        (folder / f"node-{number}.json").write_text('{"tests": []}' + " " * (script_runner.MAX_BYTES // 2))
        (folder / f"python-{number}.failures").write_text("x" * (test_log.MAX_BYTES // 2))
    assert read_watched(report) == Watched(ended=False)
    told = read_node(report)
    assert told is not None
    assert (told.report.whole, told.report.problem) == (False, script_runner.TOO_MUCH)


def test_only_so_many_files_of_the_guards_folder_are_looked_at(tmp_path: Path) -> None:
    report = tmp_path / "results.xml"
    clear_guard_folder(report)
    for number in range(MAX_FILES + 1):
        for runner in ("python", "node"):
            (guard_folder(report) / f"{runner}-{number}.started").touch()
    assert read_watched(report) == Watched(ended=False)
    told = read_node(report)
    assert told is not None
    assert (told.report.whole, told.report.problem) == (False, script_runner.TOO_MUCH)
