"""The lock of a task: one process works on it at a time."""

import contextlib
from collections.abc import Iterator

from clean_room_agent.artifacts.names import short_id
from clean_room_agent.db.session import has_session
from clean_room_agent.errors import RecordError, UsageError
from clean_room_agent.workspace import Workspace, hold

PATIENCE = 2.0
"""Seconds: a process that was killed may leave children that take so long to notice."""


@contextlib.contextmanager
def task_lock(workspace: Workspace, task_id: str, *, patience: float = PATIENCE) -> Iterator[None]:
    """Hold the lock of the task; its file is deleted with the task's session.

    Raises:
        UsageError: another one has.
    """
    workspace.create()
    lock = workspace.task_lock(task_id)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(hold(lock, timeout=patience, what=f"run {short_id(task_id)}"))
        except RecordError as exc:
            raise UsageError(
                exc.message, hint="another process works on it: wait until it ends, or stop it"
            ) from exc
        try:
            yield
        finally:
            if not has_session(workspace.repo, task_id):
                lock.unlink(missing_ok=True)
