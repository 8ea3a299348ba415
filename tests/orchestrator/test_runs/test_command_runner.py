import os
import sys
from pathlib import Path

import pytest
from testing.repositories import make_repository

from clean_room_agent.git.repository import open_repository
from clean_room_agent.git.worktree import add_worktree
from clean_room_agent.orchestrator.config import TestingConfig
from clean_room_agent.orchestrator.events import Event
from clean_room_agent.orchestrator.test_runs.command_runner import CommandRunner, TestWorktree


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


def test_a_script_that_watches_unless_ci_is_set_ends_and_that_is_told(runner: CommandRunner) -> None:
    watch = 'npm() { [ -n "$CI" ] || sleep 60; echo "CI=$CI"; }; npm test'
    runner.config = TestingConfig(test_command=watch, timeout=20)
    runner.inherited = {name: value for name, value in os.environ.items() if name != "CI"}
    assert runner.run_all("baseline").end.output == "CI=1\n"
    assert "CI=1 is set for the tests" in runner.notes[0]
    runner.inherited = {**runner.inherited, "CI": "mine"}
    assert runner.run_all("baseline").end.output == "CI=mine\n"
    assert runner.notes == ()
