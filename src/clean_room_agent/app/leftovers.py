"""Locks of tasks, and cleaning up after dead processes: a process holds the lock of its task; leftovers are recognised
by a free lock, and removed or made resumable.
"""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from clean_room_agent.app.clock import utc_now
from clean_room_agent.artifacts.names import short_id
from clean_room_agent.artifacts.outcomes import ENDED, RunStatus
from clean_room_agent.db.connection import remove_database
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.runs import (
    OrchestratorRunRow,
    RunOutcome,
    RunOverview,
    get_archive,
    get_orchestrator_run,
    list_running,
    set_outcome,
)
from clean_room_agent.db.session import Session, archived_states, has_session
from clean_room_agent.errors import RecordError, UsageError
from clean_room_agent.folders import remove_tree
from clean_room_agent.git.refs import delete_ref, list_refs
from clean_room_agent.git.repository import Repository
from clean_room_agent.git.worktree import (
    remove_leftovers,
    reports_beside,
    tasks_of_worktrees,
    worktree_places,
)
from clean_room_agent.workspace import TASK_ID, Workspace, hold, is_held

PATIENCE = 2.0
"""Seconds to wait for a lock: children of a killed process may take so long to notice."""
OURS = re.compile(
    r"(?:session|curated|task)_(?P<task>[A-Za-z0-9_-]{1,64})\.(?:sqlite|lock)(?:-\w+|\.part)?\Z"
)
"""The files of a task in the folder of sessions."""
DIED = "its process died"


def status_now(workspace: Workspace, task_id: str, recorded: RunStatus) -> RunStatus:
    """The status of a run: interrupted if it is recorded as running and no process holds it."""
    if recorded is RunStatus.RUNNING and not is_held(workspace.task_lock(task_id)):
        return RunStatus.INTERRUPTED
    return recorded


def as_it_stands(workspace: Workspace, entry: RunOverview) -> RunOverview:
    """The run with its current status."""
    return replace(entry, status=status_now(workspace, entry.task_id, entry.status))


@contextlib.contextmanager
def task_lock(workspace: Workspace, task_id: str, *, patience: float = PATIENCE) -> Iterator[None]:
    """Hold the lock of the task; its file is deleted with the task's session.

    Raises:
        UsageError: another process holds it.
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


def delete_refs(repo: Repository, task_id: str) -> tuple[str, ...]:
    """Delete what git keeps of the task besides its branch; returns the deleted refs."""
    refs = tuple(list_refs(repo, f"refs/cra/{task_id}/"))
    for ref in refs:
        delete_ref(repo, ref)
    return refs


def reap(workspace: Workspace, repo: Repository, worktrees: Path) -> tuple[str, ...]:
    """Clean up after runs of this repository whose process died, keeping what they need to be resumed; returns what was
    done. Runs that a process holds, and anything that does not belong to a task of this folder, are not touched.
    """
    if not workspace.raw.exists():
        return ()
    done: list[str] = []
    with Record.open(workspace.repo, clock=utc_now) as record:
        tasks = {match["task"] for path in workspace.sessions.iterdir() if (match := OURS.match(path.name))}
        tasks.update(row.task_id for row in record.write(list_running))
        tasks.update(task for task in tasks_of_worktrees(repo, worktrees) if re.fullmatch(TASK_ID, task))
        for task_id in sorted(tasks):
            try:
                with task_lock(workspace, task_id, patience=0):
                    done += _put_away(workspace, repo, worktrees, record, task_id)
            except UsageError:
                continue  # it runs
    return tuple(done)


def _put_away(
    workspace: Workspace, repo: Repository, worktrees: Path, record: Record, task_id: str
) -> list[str]:
    run = record.write(get_orchestrator_run, task_id)
    short = short_id(task_id)
    done = []
    if run is not None and run.status is RunStatus.RUNNING:
        done.append(_end_dead_run(record, run))
    trees = (*worktree_places(worktrees / short), worktrees / f"{short}-index")
    done += [f"removed the worktree {tree}" for tree in trees if remove_leftovers(repo, task_id, tree)]
    for reports in map(reports_beside, trees):
        if reports.is_dir():
            remove_tree(reports)
            done.append(f"removed the folder {reports}")
    if run is not None and run.command == "solve" and run.status not in ENDED:
        return done
    if has_session(workspace.repo, task_id):
        _archive_session(workspace, record, task_id)
        done.append(f"archived the session of {short} in the record")
    if workspace.run_copy(task_id).exists():
        done.append(f"removed the copy of the index that {short} had")
    remove_database(workspace.run_copy(task_id))
    remove_database(workspace.run_copy(task_id).with_suffix(".sqlite.part"))
    if run is None or run.command != "solve":
        done += [f"deleted {ref}" for ref in delete_refs(repo, task_id)]
    return done


def _end_dead_run(record: Record, run: OrchestratorRunRow) -> str:
    goes_on = run.command == "solve"
    outcome = RunOutcome(
        status=RunStatus.INTERRUPTED if goes_on else RunStatus.FAILED,
        completed_at=None if goes_on else record.now(),
        reason=DIED,
        branch=run.branch,
        result_commit=run.result_commit,
    )
    record.write(set_outcome, run.id, outcome)
    short = short_id(run.task_id)
    if goes_on:
        return f"run {short} was interrupted: {DIED}; continue with: cra solve --resume {short}"
    return f"{run.command} {short} has failed: {DIED}"


def _archive_session(workspace: Workspace, record: Record, task_id: str) -> None:
    """Archive the session in the record as it is, and delete its file."""
    known = record.write(get_archive, task_id)
    session = Session.open(workspace.repo, task_id, clock=utc_now)
    states = {key: session.get_state(key) for key in session.list_keys()}
    if known is None or archived_states(known.session_blob) != states:
        session.archive(record)
    else:
        session.close()
        remove_database(workspace.session(task_id))
