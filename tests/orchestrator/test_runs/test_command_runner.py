import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from testing.patience import PATIENCE, stop_once_begun
from testing.repositories import make_repository
from tests.orchestrator.test_runs.tiny_project import PYTEST, Runner, RunOnce, Write

from clean_room_agent.artifacts.evidence import StackFrame
from clean_room_agent.artifacts.test_results import Failure
from clean_room_agent.git.repository import open_repository
from clean_room_agent.git.worktree import add_worktree
from clean_room_agent.orchestrator.events import Event
from clean_room_agent.orchestrator.run_config import TestingConfig
from clean_room_agent.orchestrator.test_runs.command_runner import (
    CommandRunner,
    TestWorktree,
    passed_again,
    rerun_command,
    run_tests,
)
from clean_room_agent.orchestrator.test_runs.gate import judge_final, judge_step
from clean_room_agent.orchestrator.test_runs.output import MAX_EXPLAINED
from clean_room_agent.orchestrator.test_runs.output import describe as explain
from clean_room_agent.orchestrator.test_runs.results import TestRun, evidence_of
from clean_room_agent.orchestrator.test_runs.test_commands import Watched


class Silence:
    def notice(self, event: Event) -> None:
        pass


@pytest.fixture
def runner(tmp_path: Path) -> CommandRunner:
    top = make_repository(tmp_path / "project", {"a.py": "a = 1\n"})
    repo = open_repository(top)
    worktree = add_worktree(repo, repo.head, tmp_path / "tree", "task")
    command = f"{sys.executable} -c \"open('a.py', 'w').write('spoiled'); open('left', 'w')\""
    return CommandRunner(
        config=TestingConfig(test_command=command),
        tree=TestWorktree(worktree=worktree),
        inherited=dict(os.environ),
        report=tmp_path / "reports" / "results.xml",
        observer=Silence(),
    )


def test_what_a_command_left_behind_is_gone_after_a_checkout_of_the_same_commit(
    runner: CommandRunner,
) -> None:
    head = runner.tree.worktree.repo.head
    runner.checkout(head)
    runner.run_all("baseline")
    assert (runner.root / "left").exists()
    runner.checkout(head)
    assert not (runner.root / "left").exists()
    assert (runner.root / "a.py").read_text() == "a = 1\n"


def test_lint_commands_count_as_commands(runner: CommandRunner) -> None:
    head = runner.tree.worktree.repo.head
    runner.checkout(head)
    runner.config = TestingConfig(test_command="true", lint_command="echo spoiled > a.py")
    assert runner.inform(head) == ("", None)
    runner.checkout(head)
    assert (runner.root / "a.py").read_text() == "a = 1\n"


def test_another_command_runs_where_tests_do_and_tells_its_code_and_words(runner: CommandRunner) -> None:
    head = runner.tree.worktree.repo.head
    runner.checkout(head)
    assert runner.run_apart("echo $PWD; echo spoiled > a.py; exit 3") == (3, ".\n")
    runner.checkout(head)
    assert (runner.root / "a.py").read_text() == "a = 1\n"
    runner.config = TestingConfig(test_command="true", timeout=0.5)
    assert runner.run_apart("sleep 30")[0] == 124


def test_what_takes_several_times_as_long_as_before_is_ended_and_told_so(runner: CommandRunner) -> None:
    runner.checkout(runner.tree.worktree.repo.head)
    runner.config = TestingConfig(test_command="sleep 30", timeout=20)
    said = "stopped after 0.5 s (several times what it took before); all its processes were killed"
    assert runner.run_step_unseen(0.5).report.problem == said
    runner.config = TestingConfig(test_command="sleep 30", timeout=0.5)
    assert "([testing].timeout)" in runner.run_step_unseen(9).report.problem


def test_a_script_that_watches_unless_ci_is_set_ends_and_that_is_told(runner: CommandRunner) -> None:
    watch = 'npm() { [ -n "$CI" ] || sleep 60; echo "CI=$CI"; }; npm test'
    runner.config = TestingConfig(test_command=watch, timeout=20)
    runner.inherited = {name: value for name, value in os.environ.items() if name != "CI"}
    assert runner.run_all("baseline").end.output == "CI=1\n"
    assert "CI=1 is set for the tests" in runner.notes[0]
    runner.inherited = {**runner.inherited, "CI": "mine"}
    assert runner.run_all("baseline").end.output == "CI=mine\n"
    assert runner.notes == ()


EVERY_OUTCOME = """
import unittest
import pytest
from base import Inherited
from tool import deep

def test_ok(): pass
def test_deep():
    deep(0)
@pytest.mark.xfail
def test_expected(): assert 0
@pytest.mark.xfail(strict=True)
def test_strict(): pass
@pytest.mark.skip
def test_skipped(): pass
@pytest.mark.parametrize("v", ["a::b", "x/y.py", "q [z]", "é\\n", "$(x) 'y\\""])
def test_odd(v): assert v != "x/y.py"
class TestOuter(Inherited):
    class TestInner:
        def test_nested(self): assert {"a": 1} == {"a": 2}, "words"
@pytest.fixture
def boom(): raise RuntimeError("fixture")
def test_setup(boom): pass
@pytest.fixture
def late():
    yield
    raise RuntimeError("teardown")
def test_teardown(late): pass
class Old(unittest.TestCase):
    def test_u(self): self.assertEqual(1, 2)
"""


def test_every_outcome_of_pytest_is_read_under_its_node_id(write: Write, run: Runner) -> None:
    write(
        {
            "tests/test_all.py": EVERY_OUTCOME,
            "base.py": "class Inherited:\n    def test_inherited(self): assert 1 == 2\n",
            "tool.py": "def deep(n):\n    raise ValueError(f'n is {n}')\n",
        }
    )
    got = run()
    here = "tests/test_all.py::"
    assert dict(got.report.outcomes) == {
        here + "Old::test_u": "failed",
        here + "TestOuter::TestInner::test_nested": "failed",
        here + "TestOuter::test_inherited": "failed",
        here + "test_deep": "failed",
        here + "test_expected": "xfailed",
        here + "test_odd[$(x) 'y\"]": "passed",
        here + "test_odd[\\xe9\\n]": "passed",
        here + "test_odd[a::b]": "passed",
        here + "test_odd[q [z]]": "passed",
        here + "test_odd[x/y.py]": "failed",
        here + "test_ok": "passed",
        here + "test_setup": "error",
        here + "test_skipped": "skipped",
        here + "test_strict": "failed",
        here + "test_teardown": "error",
    }
    assert (
        got.report.runner,
        got.report.whole,
        got.report.named,
        got.report.collected,
        got.end.returncode,
    ) == ("pytest", True, True, 15, 1)
    by_name = {test.name.removeprefix(here): test for test in got.failing}
    assert by_name["test_deep"].message == "ValueError: n is 0"
    assert (by_name["test_deep"].path, by_name["test_deep"].line) == ("tool.py", 2)
    assert by_name["TestOuter::TestInner::test_nested"].message.startswith(
        "AssertionError: words\nassert {'a': 1}"
    )
    last = EVERY_OUTCOME.count("\n")
    assert got.frames[0] == StackFrame(path="tests/test_all.py", line=last, function="test_u")
    assert StackFrame(path="tests/test_all.py", line=9, function="test_deep") in got.frames
    assert StackFrame(path="tool.py", line=2, function="deep") in got.frames


def test_one_test_runs_again_alone_whatever_its_name(write: Write, run: Runner) -> None:
    write(
        {
            "tests/test_odd.py": "import pytest\n@pytest.mark.parametrize('v', ['a b $(x)\"', \"it's [;] x::y\"])\n"
            "def test_v(v): assert v[0] != 'a'\ndef test_other(): assert 0\n"
        }
    )
    first = run(PYTEST + " tests -k 'test_v or test_other'")
    odd, *others = sorted(first.report.outcomes, key=lambda name: first.report.outcomes[name] != "passed")
    assert (first.report.outcomes[odd], len(others)) == ("passed", 2)
    for names in ([odd], others):
        command = rerun_command(first, names)
        assert command is not None
        again = run(command)
        assert again.report.outcomes == {name: first.report.outcomes[name] for name in names}
        assert passed_again(again, names) == {name: first.report.outcomes[name] == "passed" for name in names}


def test_a_file_that_cannot_be_imported_hides_no_other_results(write: Write, run: Runner) -> None:
    write(
        {
            "test_a.py": "def test_ok(): pass\n",
            "test_b.py": "from nothing_here import x\ndef test_b(): pass\n",
            "sub/test_c.py": "import pytest\npytest.skip('all', allow_module_level=True)\n",
        }
    )
    got = run()
    assert dict(got.report.outcomes) == {
        "sub/test_c.py": "skipped",
        "test_a.py::test_ok": "passed",
        "test_b.py": "error",
    }
    assert got.report.collected == 1
    found = evidence_of(got)
    assert found.failing_tests == ("test_b.py",)
    assert found.messages == ("ModuleNotFoundError: No module named 'nothing_here'",)
    assert found.frames == (StackFrame(path="test_b.py", line=1, function="<module>"),)


GREEN = {"test_a.py": "def test_a(): pass\ndef test_b(): pass\n"}


@pytest.fixture
def before(run_once: RunOnce) -> TestRun:
    """What the tests came to before any change."""
    before = run_once(PYTEST, GREEN)
    assert dict(before.report.outcomes) == {"test_a.py::test_a": "passed", "test_a.py::test_b": "passed"}
    return before


def test_collecting_nothing_is_a_failure(write: Write, run: Runner) -> None:
    write({"readme.txt": ""})
    got = run()
    assert (got.end.returncode, got.report.collected, dict(got.report.outcomes)) == (5, 0, {})
    assert judge_step(got, got).reason == "no tests were collected (exit 5)"
    assert not judge_final(got, got, "no-new-failures").complete


def test_a_process_that_ends_early_is_not_whole_even_with_exit_0(
    write: Write, run: Runner, before: TestRun
) -> None:
    for body in ("import os; os.kill(os.getpid(), 9)", "import os; os._exit(0)"):
        write({"test_a.py": f"def test_b(): pass\ndef test_a():\n    {body}\n"})
        got = run()
        assert (got.report.runner, got.report.whole) == ("pytest", False)
        assert got.report.problem.startswith("pytest left no report")
        assert not judge_step(before, got).passed
        assert not judge_final(before, got, "all-pass").complete
    inside = f"{sys.executable} -c 'import pytest; pytest.main()'"
    hidden = run(f"{inside}; true")
    assert not judge_step(before, hidden).passed


def test_an_exit_code_of_0_hides_no_failing_test_and_neither_does_a_conftest_that_takes_one_out(
    write: Write, run: Runner, before: TestRun
) -> None:
    write(
        {
            "test_a.py": "def test_a(): assert 0\ndef test_b(): pass\n",
            "conftest.py": "def pytest_sessionfinish(session): session.exitstatus = 0\n"
            "def pytest_collection_modifyitems(items): del items[1:]\n",
        }
    )
    after = run()
    assert after.end.returncode == 0
    assert judge_step(before, after).newly_failing == ("test_a.py::test_a", "test_a.py::test_b")
    verdict = judge_final(before, after, "all-pass")
    assert (verdict.complete, verdict.newly_failing) == (False, ("test_a.py::test_a", "test_a.py::test_b"))


def test_a_report_that_is_cut_is_not_whole(write: Write, run: Runner, tmp_path: Path) -> None:
    write({"test_a.py": "def test_a(): pass\n"})
    report = tmp_path / "run" / "report.xml"
    got = run(f"{PYTEST} && truncate -s -20 {report.with_suffix('.guard')}/python-*.xml")
    assert (got.report.whole, got.report.problem.split(":")[0]) == (False, "pytest's report is cut short")
    forged = run("echo '<!DOCTYPE x [<!ENTITY a \"b\">]><x>&a;</x>' > " + str(report) + " # pytest")
    assert not forged.report.whole


def test_pytest_behind_another_command_is_known_by_its_report_which_is_not_taken_for_the_next_one(
    write: Write, run: Runner
) -> None:
    write({"test_a.py": "def test_a(): pass\n", "check.sh": PYTEST + "\n"})
    first = run("sh check.sh")
    assert (first.report.runner, dict(first.report.outcomes)) == ("pytest", {"test_a.py::test_a": "passed"})
    assert (first.report.whole, first.watched.ended) == (True, True)
    assert run("true").watched == Watched(), "what an earlier command left is gone"
    got = run(PYTEST + " --no-such-option")
    assert (got.report.whole, got.end.returncode) == (False, 4)
    assert "--no-such-option" in got.report.problem


def test_a_hanging_run_with_children_ends_at_the_timeout_and_leaves_no_process(
    write: Write, run: Runner, project: Path
) -> None:
    write(
        {
            "test_a.py": "import os, subprocess, sys, time\n"
            "def test_hang():\n"
            "    code = \"import os, time; os.setsid(); open('pid', 'w').write(str(os.getpid())); time.sleep(600)\"\n"
            "    subprocess.Popen([sys.executable, '-c', code])\n"
            "    while not os.path.exists('pid') or not open('pid').read(): time.sleep(0.01)\n"
            "    print('seen before the end', flush=True)\n"
            "    time.sleep(600)\n"
        }
    )
    got = stop_once_begun(
        lambda seconds: run(PYTEST + " -s", timeout=seconds),
        lambda got: "seen before the end" in got.end.excerpt,
    )
    assert (got.end.timed_out, got.report.whole) == (True, False)
    assert re.match(r"stopped after (0\.5|3|30) s ", got.report.problem)
    assert "seen before the end" in got.end.excerpt
    assert evidence_of(got).messages[0] == got.report.problem
    with pytest.raises(ProcessLookupError):
        os.kill(int((project / "pid").read_text()), 0)
    assert not judge_step(got, got).passed


def test_gigabytes_of_output_are_cut_in_the_middle_and_the_results_still_read(
    write: Write, run: Runner
) -> None:
    write(
        {
            "test_a.py": "import os\ndef test_loud():\n    line = b'x' * 65535 + b'\\n'\n"
            "    for _ in range(4000): os.write(1, line)\n    assert 0, 'loud'\n"
        }
    )
    got = run(PYTEST + " -s", bound=50_000)
    assert len(got.end.output) < 60_000
    assert "bytes left out" in got.end.output
    assert len(got.end.excerpt) < 21_000
    assert dict(got.report.outcomes) == {"test_a.py::test_loud": "failed"}
    assert got.failing[0].message == "AssertionError: loud\nassert 0"


def test_two_runs_of_the_same_code_give_the_same_words(write: Write, run: Runner) -> None:
    write(
        {
            "test_a.py": "import uuid\nimport pytest\nclass Thing: pass\n"
            "def test_a(tmp_path): assert (Thing(), uuid.uuid4(), tmp_path, {'a', 'b', 'c'}) == 1\n"
            "@pytest.mark.parametrize('v', [object()], ids=repr)\ndef test_v(v): pass\n"
        }
    )
    command = f"{sys.executable} -m pytest -p no:cacheprovider"
    first, second = run(command), run(command)
    assert first.end.output != second.end.output
    assert (first.end.excerpt, first.failing, first.frames) == (
        second.end.excerpt,
        second.failing,
        second.frames,
    )
    assert "at 0x…" in first.failing[0].actual
    assert evidence_of(first) == evidence_of(second)
    addressed = "test_a.py::test_v[<object object at 0x…>]"
    assert (
        first.report.outcomes
        == second.report.outcomes
        == {addressed: "passed", "test_a.py::test_a": "failed"}
    ), "a name with an address is the same test in the next run"
    assert rerun_command(first, addressed) is None


def test_a_retry_within_the_same_second_does_not_run_old_bytecode(
    write: Write, run: Runner, project: Path
) -> None:
    case = "import unittest\nfrom tool import n\nclass A(unittest.TestCase):\n    def test_a(self): self.assertEqual(n, 1)\n"
    write({"test_a.py": case, "tool.py": "n = 1\n"})
    os.utime(project / "tool.py", (1_000_000, 1_000_000))
    command = f"{sys.executable} -m unittest"
    assert list(run(command).report.outcomes.values()) == ["passed"]
    write({"tool.py": "n = 2\n"})
    os.utime(project / "tool.py", (1_000_000, 1_000_000))
    assert list(run(command).report.outcomes.values()) == ["failed"]


def test_of_very_many_failures_the_first_alone_are_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = MAX_EXPLAINED + 100
    cases = "".join(
        f'<testcase classname="t" name="test_{number:05}" file="t.py" line="1"><failure message="m">E   m</failure></testcase>'
        for number in range(count)
    )
    left = tmp_path / "left.xml"
    left.write_text(f'<testsuites><testsuite name="pytest" tests="{count}">{cases}</testsuite></testsuites>')
    described: list[str] = []

    def describe(failure: Failure, *args: Any, **options: Any) -> Any:
        described.append(failure.name)
        return explain(failure, *args, **options)

    monkeypatch.setattr("clean_room_agent.orchestrator.test_runs.command_runner.describe", describe)
    report = tmp_path / "reports/report.xml"
    got = run_tests(f"cp {left} {report}; exit 1", cwd=tmp_path, env={}, timeout=PATIENCE, report=report)
    assert (len(described), len(got.failing), len(got.report.outcomes)) == (MAX_EXPLAINED, count, count)
    assert described == sorted(described)
    assert [test.message for test in (got.failing[0], got.failing[-1])] == ["m", ""]


LEFT = {
    "a report that is a closed folder": 'mkdir -p "$REPORT/d/e"; touch "$REPORT/d/e/f"; chmod 0 "$REPORT/d"',
    "a folder that cannot be written": 'chmod 0555 "$(dirname "$REPORT")"',
    "a folder that cannot be entered": 'chmod 0 "$(dirname "$REPORT")"',
    "records in a folder that cannot be written": 'cd "$CRA_TEST_REPORTS"; touch python-1.started; echo "[]" > python-1.ended; chmod 0555 .',
    "a closed folder of records": 'chmod 0 "$CRA_TEST_REPORTS"',
}
TWICE = """
import os, sys
from pathlib import Path
from clean_room_agent.orchestrator.test_runs.command_runner import run_tests
report = Path("reports/results.xml").absolute()
env = {"PATH": os.environ["PATH"], "CRA_TEST_REPORTS": str(report.with_suffix(".guard")), "REPORT": str(report)}
for command in (sys.argv[1], "true"):
    run = run_tests(command, cwd=Path.cwd(), env=env, timeout=float(sys.argv[2]), report=report)
print(run.watched.ended, run.end.returncode)
"""
WITHOUT_ROOT = (
    "setpriv",
    "--bounding-set=-dac_override,-dac_read_search",
    "--inh-caps=-dac_override,-dac_read_search",
)


@pytest.mark.parametrize("left", LEFT)
def test_a_command_starts_anew_whatever_was_left(left: str, tmp_path: Path) -> None:
    ordinary = WITHOUT_ROOT if os.geteuid() == 0 else ()
    done = subprocess.run(
        (*ordinary, sys.executable, "-c", TWICE, LEFT[left], str(PATIENCE)),
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("None 0\n", 0), done.stderr


SHARES = "import unittest\n\nclass SharesTest(unittest.TestCase):\n    def test_a(self): pass\n    def test_b(self): self.fail()\n"


def test_unittest_behind_a_script_names_the_tests_that_pass_too(write: Write, run: Runner) -> None:
    write(
        {
            "tests/__init__.py": "",
            "tests/test_shares.py": SHARES,
            "check.sh": f"{sys.executable} -m unittest\n",
        }
    )
    report = run("sh check.sh").report
    assert report.named
    assert report.outcomes == {
        "tests.test_shares.SharesTest.test_a": "passed",
        "tests.test_shares.SharesTest.test_b": "failed",
    }
    assert (report.collected, report.passed) == (2, 1)


def test_all_runs_of_pytest_in_one_command_count(write: Write, run: Runner) -> None:
    write(
        {
            "a/test_a.py": "def test(): assert 1 == 2\n",
            "b/test_b.py": "import pytest, subprocess, sys\n"
            "def test():\n    pytest.main(['c/inner.py'])\n    subprocess.run([sys.executable, '-m', 'pytest', 'c/inner.py'])\n",
            "c/inner.py": "def test_inner(): assert 0\n",
            "Makefile": f"test:\n\t{PYTEST} b\n",
        }
    )
    found = run(f"{PYTEST} a --junitxml=mine.xml; make test; {PYTEST} b")
    assert found.report.outcomes == {"a/test_a.py::test": "failed", "b/test_b.py::test": "passed"}
    assert [(one.name, one.actual, one.expected) for one in found.failing] == [
        ("a/test_a.py::test", "1", "2")
    ]
    assert (found.report.collected, found.report.passed, found.report.whole) == (2, 1, True)


@pytest.mark.parametrize("command", [f"{PYTEST} a; {PYTEST} b", f"(cd a && {PYTEST}); (cd b && {PYTEST})"])
def test_packages_with_a_pytest_ini_of_their_own_keep_their_tests_apart(
    command: str, write: Write, run: Runner
) -> None:
    tests = {"a/test_it.py": "def test_it(): pass\n", "b/test_it.py": "def test_it(): assert 0\n"}
    write(
        {**tests, "a/pytest.ini": "[pytest]\n", "b/pytest.ini": "[pytest]\n", "b/test_no.py": "import no\n"}
    )
    found = run(command)
    assert dict(found.report.outcomes) == {
        "a/test_it.py::test_it": "passed",
        "b/test_it.py::test_it": "failed",
        "b/test_no.py": "error",
    }
    failing = {one.name: (one.path, one.line) for one in found.failing}
    assert failing["b/test_it.py::test_it"] == ("b/test_it.py", 1)


def test_pytest_and_unittest_in_one_command_count(write: Write, run: Runner) -> None:
    case = "import unittest\nclass A(unittest.TestCase):\n    def test_u(self): self.assertEqual(1, 2)\n"
    write({"a/test_a.py": case, "b/test_b.py": "def test(): pass\n"})
    found = run(f"{sys.executable} -m unittest discover -s a; {PYTEST} b")
    assert found.report.outcomes == {"b/test_b.py::test": "passed", "a.test_a.A.test_u": "failed"}
    assert [(one.name, one.actual, one.expected) for one in found.failing] == [
        ("a.test_a.A.test_u", "1", "2")
    ]


CASE = """\
import unittest
class A(unittest.TestCase):
    def test_u(self):
        for number in {numbers}:
            with self.subTest(number=number): self.assertEqual(number, 1)
class B(unittest.TestCase):
    @classmethod
    def setUpClass(cls): {setup}
    def test_b(self): pass
"""
UNITTEST = f"{sys.executable} -m unittest"


@pytest.mark.parametrize(
    "command",
    [
        f"{UNITTEST} discover -s a && {UNITTEST} discover -s b-2",
        f"{UNITTEST} discover -v -s a && {UNITTEST} discover -v -s b-2",
        f"(cd a; {UNITTEST} -q test_it) && (cd b-2; {UNITTEST})",
    ],
)
def test_modules_of_one_name_that_unittest_finds_in_two_folders_are_kept_apart(
    command: str, write: Write, run: Runner
) -> None:
    write(
        {
            "a/test_it.py": CASE.format(numbers=[1], setup="pass"),
            "b-2/test_it.py": CASE.format(numbers=[1, 2], setup="raise OSError"),
            "b-2/test_no.py": "import no\n",
        }
    )
    found = run(command)
    assert found.report.outcomes == {
        "a.test_it.A.test_u": "passed",
        "a.test_it.B.test_b": "passed",
        "b-2.test_it.A.test_u": "failed",
        "b-2.test_it.B.setUpClass": "error",
        "unittest.loader._FailedTest.b-2.test_no": "error",
    }
    failing = {one.name: (one.path, one.line, one.actual) for one in found.failing}
    assert failing["b-2.test_it.A.test_u"] == ("b-2/test_it.py", 5, "2")
    again = rerun_command(run(f"{UNITTEST} discover -s b-2"), ["b-2.test_it.A.test_u"])
    assert again is not None
    assert run(again).report.outcomes["b-2.test_it.A.test_u"] == "failed"


def test_files_of_tests_that_run_themselves_name_each_of_them(write: Write, run: Runner) -> None:
    case = CASE.format(numbers=[1], setup="pass") + "unittest.main()\n"
    write({"a/test_it.py": case, "b/test_it.py": case.replace("[1]", "[2]"), "b/tests.py": "assert 1\n"})
    report = run(f"for one in */*.py; do {sys.executable} $one; done").report
    assert report.outcomes == {
        "a.test_it.A.test_u": "passed",
        "a.test_it.B.test_b": "passed",
        "b.test_it.A.test_u": "failed",
        "b.test_it.B.test_b": "passed",
    }
    assert report.named


def test_a_report_that_was_changed_hides_no_failure(write: Write, run: Runner) -> None:
    changes = """\
import atexit, os, re
def change():
    place = os.path.join(os.environ["CRA_TEST_REPORTS"], "python-%d.xml" % os.getpid())
    text = open(place).read()
    open(place, "w").write(re.sub("<failure.*?</failure>", "", text, flags=re.S))
atexit.register(change)
"""
    write({"shares.py": changes, "test_a.py": "import shares\ndef test(): assert 0\n"})
    assert run(f"{PYTEST} -qq --no-summary").red() == {"test_a.py::test"}
