import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from testing.client.model_client import NOW
from testing.repositories import make_repository
from testing.runs.memory_commits import REPOSITORY
from testing.runs.memory_run import (
    TASK,
    TASK_ID,
    MemoryPool,
    MemoryProject,
    MemoryRun,
)

from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.db.raw.runs import OrchestratorRunRow, get_orchestrator_run
from clean_room_agent.errors import ModelError
from clean_room_agent.git.commits import Snapshot
from clean_room_agent.git.refs import list_refs
from clean_room_agent.git.repository import open_repository
from clean_room_agent.orchestrator import setup
from clean_room_agent.orchestrator.events import Note, RunStarted
from clean_room_agent.orchestrator.setup import (
    RunParts,
    differences,
    opened_run,
    recorded_snapshot,
)


def parts_of(memory: MemoryRun, **origin: Any) -> RunParts:
    run = memory.run
    given = {"replay_of": run.commits.base, **origin}
    return RunParts(
        task=run.task,
        repo=REPOSITORY,
        models=run.models,
        model_lines=(("coding", "coder:3b", 4096),),
        remote="",
        index=memory.index,
        journal=run.journal,
        worktrees=run.worktrees,
        **given,
    )


def row(**snapshot: Any) -> OrchestratorRunRow:
    account = {"tracked": ["a.py"], "untracked": [], "excluded": [["big.bin", "too large"]], **snapshot}
    return OrchestratorRunRow(
        task_id=TASK_ID,
        repo_path="/memory",
        task_description=TASK,
        timestamp=NOW,
        command="solve",
        config="{}",
        program_version="0",
        base_commit="0" * 40,
        snapshot_commit="c0ffee",
        snapshot=json.dumps(account),
    )


def test_a_run_stands_at_its_snapshot_and_the_user_is_told(project: MemoryProject) -> None:
    memory = project.open(lambda _: "")
    with opened_run(parts_of(memory)) as run:
        assert run.commits.head == run.commits.base == memory.run.commits.base
        assert run.progress.plan.done == []
    pool = memory.run.worktrees
    assert isinstance(pool, MemoryPool)
    assert (pool.opened, pool.closed) == ([run.commits.base], True)
    started, note = project.observer.events[:2]
    assert isinstance(started, RunStarted)
    assert (started.task, started.models) == (TASK, (("coding", "coder:3b", 4096),))
    assert note == Note(text="no sandbox here")


def test_the_index_is_waited_for_where_a_context_is_made_and_no_earlier(project: MemoryProject) -> None:
    memory = project.open(lambda _: "")
    memory.index.refresh(Path(), (), "")
    with opened_run(parts_of(memory)) as run:
        assert memory.index.described() == ""
        run.context.follow_head()
        assert memory.index.described() == run.commits.base


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (KeyboardInterrupt(), RunStatus.INTERRUPTED, "interrupted"),
        (ModelError("the server is gone"), RunStatus.FAILED, "the server is gone"),
        (ZeroDivisionError("x"), RunStatus.FAILED, "ZeroDivisionError: x"),
    ],
)
def test_what_ends_a_run_is_on_record_before_it_goes_on(
    project: MemoryProject, error: BaseException, status: RunStatus, reason: str
) -> None:
    memory = project.open(lambda _: "")
    with pytest.raises(type(error)), opened_run(parts_of(memory)):
        raise error
    ended = project.record.write(get_orchestrator_run, TASK_ID)
    assert ended is not None
    assert (ended.status, ended.reason) == (status, reason)
    pool = memory.run.worktrees
    assert isinstance(pool, MemoryPool)
    assert pool.closed


def test_a_run_that_goes_on_has_the_snapshot_that_it_began_with(project: MemoryProject) -> None:
    memory = project.open(lambda _: "", resumed=True)
    base = memory.run.commits.base
    began = replace(row(), snapshot_commit=base)
    with opened_run(parts_of(memory, replay_of=None, resumed=began)) as run:
        assert run.commits.base == base
    (started,) = (event for event in project.observer.events if isinstance(event, RunStarted))
    assert started.uncommitted == ("a.py",)
    assert started.excluded == (("big.bin", "too large"),)


def test_refs_of_a_run_whose_record_is_gone_are_in_nobody_s_way(
    project: MemoryProject, tmp_path: Path
) -> None:
    repo = open_repository(make_repository(tmp_path / "real", {"a.py": "a = 0\n"}))
    for name in ("base", "step"):
        repo.git("update-ref", f"refs/cra/{TASK_ID}/{name}", repo.head)
    memory = project.open(lambda _: "")
    taken = setup._starting_snapshot(replace(parts_of(memory, replay_of=None), repo=repo))
    assert list_refs(repo, f"refs/cra/{TASK_ID}/") == {f"refs/cra/{TASK_ID}/base": taken.commit}


def test_a_snapshot_of_an_earlier_version_is_read() -> None:
    taken = recorded_snapshot(row())
    assert (taken.commit, taken.absent, taken.generated) == ("c0ffee", (), ())


def test_how_the_worktree_differs_is_said_in_words() -> None:
    taken = Snapshot(
        commit="c0ffee",
        absent=("c.py", "d.py"),
        encoded=("d.txt",),
    )
    assert differences(taken) == [
        "git converts their encoding, so they are neither shown to models nor edited: d.txt",
        "left out by your sparse checkout, but present in the worktree: 2 (c.py, ...)",
    ]
