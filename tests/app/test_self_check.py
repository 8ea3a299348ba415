"""Checks that ask no model server."""

from pathlib import Path

import pytest
from testing.repositories import make_repository, write

from clean_room_agent.app.record_check import CheckFinding
from clean_room_agent.app.self_check import as_object, findings_of, local_checks
from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.artifacts.test_results import Outcome, TestReport
from clean_room_agent.git.repository import open_repository
from clean_room_agent.git.worktree import add_worktree
from clean_room_agent.orchestrator.events import Event
from clean_room_agent.orchestrator.run_config import TestingConfig
from clean_room_agent.orchestrator.test_runs.command_runner import CommandRunner, TestWorktree
from clean_room_agent.orchestrator.test_runs.results import CommandEnd, TestRun


def test_a_line_says_its_remedy_only_where_it_fails() -> None:
    told = as_object(CheckFinding(name="git", ok=True, text="git 2.40", remedy="update it"))
    assert (told["name"], told["ok"], told["text"]) == ("git", True, "git 2.40")
    failed = as_object(CheckFinding(name="git", ok=False, text="git 1.0", remedy="update it"))
    assert failed["remedy"] == "update it"


def test_a_repository_without_a_configuration_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    top = make_repository(tmp_path / "repo", {"a.py": "1\n"})
    lines = {line.name: line for line in local_checks(top)}
    assert lines["git"].ok
    broken = [line for line in lines.values() if not line.ok]
    assert any("cra init" in line.remedy + line.text for line in broken)


FILES = {
    ".gitignore": "_version.py\n",
    "p/__init__.py": "from p._version import v\n",
    "tests/test_a.py": "import p\n",
}
VERSION = "ModuleNotFoundError: No module named 'p._version'"


class Silence:
    def notice(self, event: Event) -> None:
        pass


@pytest.fixture
def runner(tmp_path: Path) -> CommandRunner:
    repo = open_repository(make_repository(tmp_path / "project", FILES))
    return CommandRunner(
        config=TestingConfig(test_command="t"),
        tree=TestWorktree(worktree=add_worktree(repo, repo.head, tmp_path / "tree", "task")),
        inherited={},
        report=tmp_path / "results.xml",
        observer=Silence(),
    )


def unread(output: str, code: int = 0) -> TestRun:
    return TestRun(command="t", end=CommandEnd(returncode=code, output=output), report=TestReport())


def read(code: int = 0, excerpt: str = "", message: str = "", **outcomes: Outcome) -> TestRun:
    named = {f"tests/test_{name}.py::test": outcome for name, outcome in outcomes.items()}
    if message:
        named["tests/test_a.py"] = "error"
    return TestRun(
        command="t",
        end=CommandEnd(returncode=code, excerpt=excerpt),
        report=TestReport(
            runner="pytest",
            outcomes=named,
            named=True,
            collected=len(outcomes),
            passed=list(outcomes.values()).count("passed"),
        ),
        failing=(FailingTest(name="tests/test_a.py", message=message),) if message else (),
    )


@pytest.mark.parametrize(
    ("run", "ok", "said"),
    [
        (unread("hi\n"), False, "exits with 0, and no test is seen to run: hi"),
        (unread(""), False, "no test is seen to run"),
        (unread("boom\n", 1), False, "exits with 1 before any change, and no test is seen: boom"),
        (unread("ok  \texample.com/a\t0.01s\n"), True, "only its exit code can be read"),
        (unread("test result: ok. 3 passed; 0 failed\n"), True, "only its exit code can be read"),
        (unread("Tests run: 4, Failures: 0\n"), True, "only its exit code can be read"),
        (read(a="skipped"), False, "no test passed or failed: all were skipped"),
        (read(a="passed"), True, "1 passed, 0 failed"),
    ],
    ids=range(8),
)
def test_a_command_is_right_only_if_tests_are_seen_to_run(
    run: TestRun, ok: bool, said: str, runner: CommandRunner
) -> None:
    first = next(findings_of(runner, "test_command", run))
    assert (first.ok, said in first.text) == (ok, True), first.text


def test_an_exit_code_that_no_test_explains_is_told_with_its_reason(runner: CommandRunner) -> None:
    low = "ERROR: Coverage failure: total of 43 is less than fail-under=95"
    first, second = findings_of(runner, "test_command", read(code=1, excerpt=low, a="passed"))
    assert first.ok
    assert f"test_command exits with 1 though no test fails: {low}" in second.text


def test_tests_of_which_none_can_be_imported_are_not_right(runner: CommandRunner) -> None:
    write(runner.tree.repo_top, {"p/_version.py": "v = 1\n"})
    (only,) = findings_of(runner, "test_command", read(code=2, message=VERSION))
    assert (only.ok, VERSION in only.text) == (False, True)
    assert only.remedy.endswith("put into .worktreeinclude, a line each: p/_version.py")


def test_an_ignored_file_that_some_tests_need_is_named(runner: CommandRunner) -> None:
    write(runner.tree.repo_top, {"p/_version.py": "v = 1\n"})
    found = {
        one.name: one
        for one in findings_of(runner, "test_command", read(code=1, message=VERSION, b="passed"))
    }
    assert found["test_command"].ok
    assert not found["ignored files"].ok
    assert "p/_version.py" in found["ignored files"].text
    assert "dependencies" not in found
