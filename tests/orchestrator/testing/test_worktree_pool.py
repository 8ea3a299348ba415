import sys
from dataclasses import replace
from pathlib import Path

import pytest
from testing.patience import PATIENCE
from tests.orchestrator.testing.test_test_bench import bench

from clean_room_agent import proc
from clean_room_agent.git.worktree import add_worktree
from clean_room_agent.orchestrator.testing.config import TestingConfig
from clean_room_agent.orchestrator.testing.test_bench import TestBench
from clean_room_agent.orchestrator.testing.worktree_pool import Benches, at_a_time

__all__ = ["bench"]
SLEEPS = (sys.executable, "-c", "import time; time.sleep(3600)")


def test_results_come_in_the_order_of_the_work() -> None:
    assert at_a_time(lambda index: index * index, 5, workers=2) == [0, 1, 4, 9, 16]


def test_what_runs_is_killed_when_another_fails(tmp_path: Path) -> None:
    def work(index: int) -> None:
        if index == 0:
            raise KeyboardInterrupt
        proc.run(SLEEPS, cwd=tmp_path, timeout=PATIENCE * 10, contain=False)

    with pytest.raises(KeyboardInterrupt):
        at_a_time(work, 3)


@pytest.mark.parametrize("parallel", [1, 2])
def test_commits_are_tested_in_worktrees_of_their_own_up_to_the_bound(
    bench: TestBench, tmp_path: Path, parallel: int
) -> None:
    places = tmp_path / "places"
    bench.config = TestingConfig(test_command=f"pwd >> {places}; sleep 0.2", parallel=parallel)
    added = []

    def add(number: int) -> TestBench:
        where = tmp_path / f"more-{number}"
        worktree = add_worktree(bench.worktree.repo, bench.worktree.repo.head, where, "task")
        report = tmp_path / f"reports-{number}" / "results.xml"
        added.append(number)
        return replace(bench, worktree=worktree, report=report, clean_at="")

    benches = Benches(bench, add)
    head = bench.worktree.repo.head
    assert [run.returncode for run in benches.run_step_at((head, head, head))] == [0, 0, 0]
    assert len(benches.run_step_at((head,))) == 1
    assert added == list(range(2, parallel + 1))
    assert len(set(places.read_text().split())) == parallel
