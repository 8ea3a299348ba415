import os
import sys
from pathlib import Path

import pytest
from testing.patience import PATIENCE
from testing.repositories import make_repository

from clean_room_agent import proc
from clean_room_agent.git.repository import Repository, open_repository
from clean_room_agent.orchestrator.events import Nobody
from clean_room_agent.orchestrator.run_config import SandboxConfig, TestingConfig, WorktreeConfig
from clean_room_agent.orchestrator.test_runs.worktrees import (
    RunnerSetup,
    WorktreePool,
    at_a_time,
)
from clean_room_agent.sandbox.bubblewrap import Obstacle

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
def test_commits_are_tested_in_worktrees_of_their_own_up_to_the_bound(tmp_path: Path, parallel: int) -> None:
    repo = open_repository(make_repository(tmp_path / "project", {"a.py": "a = 1\n"}))
    places = tmp_path / "places"
    with WorktreePool(
        setup(repo, tmp_path, f"pwd >> {places}; sleep 0.2", parallel), "task", Nobody()
    ) as pool:
        pool.open(repo.head)
        assert [run.end.returncode for run in pool.run_step_at((repo.head,) * 3)] == [0, 0, 0]
        assert len(pool.run_step_at((repo.head,))) == 1
        assert len(set(places.read_text().split())) == parallel
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("tree")] == []


def test_worktrees_of_an_interrupted_process_make_way(tmp_path: Path) -> None:
    repo = open_repository(make_repository(tmp_path / "project", {"a.py": "a = 1\n"}))
    made = setup(repo, tmp_path, "true", 1)
    WorktreePool(made, "task", Nobody()).open(repo.head)
    with WorktreePool(made, "task", Nobody()) as pool:
        pool.open(repo.head, resumed=True)
        assert (pool.first.root / "a.py").read_text() == "a = 1\n"


def setup(repo: Repository, folder: Path, command: str, parallel: int) -> RunnerSetup:
    return RunnerSetup(
        repo=repo,
        place=folder / "tree",
        environment=dict(os.environ),
        sandbox=SandboxConfig(mode="none"),
        testing=TestingConfig(test_command=command, parallel=parallel),
        worktree=WorktreeConfig(),
        home=folder,
        try_machine=lambda _: None,
        find=lambda: Obstacle(reason="", remedy=""),
    )
