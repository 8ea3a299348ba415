import os
import sys
from pathlib import Path

import pytest
from testing.repositories import make_repository

from clean_room_agent.git.repository import open_repository
from clean_room_agent.git.worktree import add_worktree
from clean_room_agent.orchestrator.events import Event
from clean_room_agent.orchestrator.testing.config import TestingConfig
from clean_room_agent.orchestrator.testing.test_bench import TestBench


class Silence:
    def notice(self, event: Event) -> None:
        pass


@pytest.fixture
def bench(tmp_path: Path) -> TestBench:
    top = make_repository(tmp_path / "project", {"a.py": "a = 1\n"})
    repo = open_repository(top)
    worktree = add_worktree(repo, repo.head, tmp_path / "tree", "task")
    command = f"{sys.executable} -c \"open('a.py', 'w').write('spoiled'); open('left', 'w')\""
    return TestBench(
        config=TestingConfig(test_command=command),
        worktree=worktree,
        repo_top=top,
        inherited=dict(os.environ),
        report=tmp_path / "reports" / "results.xml",
        keep=(),
        observer=Silence(),
    )


def test_what_a_command_left_behind_is_gone_after_a_checkout_of_the_same_commit(bench: TestBench) -> None:
    head = bench.worktree.repo.head
    bench.checkout(head)
    bench.run_all("baseline")
    assert (bench.worktree.path / "left").exists()
    bench.checkout(head)
    assert not (bench.worktree.path / "left").exists()
    assert (bench.worktree.path / "a.py").read_text() == "a = 1\n"


def test_lint_commands_count_as_commands(bench: TestBench) -> None:
    head = bench.worktree.repo.head
    bench.checkout(head)
    bench.config = TestingConfig(test_command="true", lint_command="echo spoiled > a.py")
    assert bench.inform(head) == ("", None)
    bench.checkout(head)
    assert (bench.worktree.path / "a.py").read_text() == "a = 1\n"


def test_another_command_runs_where_tests_do_and_tells_its_code_and_words(bench: TestBench) -> None:
    head = bench.worktree.repo.head
    bench.checkout(head)
    assert bench.run_apart("echo $PWD; echo spoiled > a.py; exit 3") == (3, ".\n")
    bench.checkout(head)
    assert (bench.worktree.path / "a.py").read_text() == "a = 1\n"
    bench.config = TestingConfig(test_command="true", timeout=0.5)
    assert bench.run_apart("sleep 30")[0] == 124
