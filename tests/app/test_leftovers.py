"""One process works on a task at a time."""

from pathlib import Path

import pytest

from clean_room_agent.app.leftovers import task_lock
from clean_room_agent.errors import UsageError
from clean_room_agent.workspace import Workspace

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
