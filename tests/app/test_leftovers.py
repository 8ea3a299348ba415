"""One process works on a task at a time; what no process works on is interrupted."""

from pathlib import Path

import pytest

from clean_room_agent.app.leftovers import as_it_stands, task_lock
from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.cli.runs import as_object
from clean_room_agent.db.raw.runs import RunOverview
from clean_room_agent.errors import UsageError
from clean_room_agent.workspace import Workspace, hold

TASK = "3f2c7a90-0000-4000-8000-000000000000"


def test_a_second_one_is_refused_and_the_lock_goes_without_a_session(tmp_path: Path) -> None:
    workspace = Workspace(repo=tmp_path)
    with task_lock(workspace, TASK):
        assert workspace.task_lock(TASK).exists()
        with pytest.raises(UsageError, match="run 3f2c7a90"), task_lock(workspace, TASK, patience=0):
            pass
    assert not workspace.task_lock(TASK).exists()


def test_another_task_is_not_locked(tmp_path: Path) -> None:
    workspace = Workspace(repo=tmp_path)
    with task_lock(workspace, TASK), task_lock(workspace, TASK.replace("3f", "4f"), patience=0):
        assert workspace.task_lock(TASK).exists()


def overview(status: RunStatus) -> RunOverview:
    return RunOverview(
        task_id=TASK,
        command="solve",
        status=status,
        task_description="Mend it",
        timestamp="2026-01-02T03:04:05Z",
        completed_at=None,
        is_run=False,
        branch="",
        result_commit="",
        reason="",
        discarded=False,
        size=7,
    )


def test_a_running_run_that_no_process_holds_is_interrupted(tmp_path: Path) -> None:
    workspace = Workspace(repo=tmp_path)
    workspace.create()
    assert as_it_stands(workspace, overview(RunStatus.RUNNING)).status is RunStatus.INTERRUPTED
    with hold(workspace.task_lock(TASK), timeout=0, what="a run"):
        assert as_it_stands(workspace, overview(RunStatus.RUNNING)).status is RunStatus.RUNNING
    assert as_it_stands(workspace, overview(RunStatus.COMPLETE)).status is RunStatus.COMPLETE


def test_a_pass_that_stands_alone_has_no_branch() -> None:
    found = as_object(overview(RunStatus.COMPLETE))
    assert (found["task_id"], found["branch"], found["bytes"]) == (TASK, "", 7)
