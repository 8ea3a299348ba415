"""Applies a run's result to the working tree, and undoes that."""

from msgspec import Struct

from clean_room_agent.app.clock import utc_now
from clean_room_agent.artifacts.names import short_id
from clean_room_agent.artifacts.outcomes import EventKind, RunStatus
from clean_room_agent.db.raw import runs
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.runs import find_task, get_orchestrator_run
from clean_room_agent.errors import UsageError
from clean_room_agent.git.apply_result import apply_to_tree, take_back
from clean_room_agent.git.repository import Repository, open_repository
from clean_room_agent.workspace import Workspace, tree_lock


class AppliedResult(Struct, frozen=True, kw_only=True):
    """What was applied, or undone."""

    task_id: str
    status: RunStatus
    reason: str
    """Why the run is not complete; "" if it is."""
    paths: tuple[str, ...]
    """The changed ones."""


def apply_run(workspace: Workspace, run: str, *, undo: bool) -> AppliedResult:
    """Apply the result of `run` to the working tree, or `undo` that.

    Raises:
        UsageError: there is no such run, it has no result, or it was discarded.
        RepositoryError: a file of the result has changed since, or cannot be written.
    """
    with Record.open(workspace.repo, clock=utc_now) as record:
        task_id = record.write(find_task, run)
        row = record.write(get_orchestrator_run, task_id)
        short = short_id(task_id)
        if row is None or not row.result_commit:
            raise UsageError(
                f"run {short} has no result to apply", hint=f"`cra show {short}` shows how it ended"
            )
        if any(event.kind == EventKind.DISCARDED for event in record.write(runs.list_events, task_id)):
            raise UsageError(
                f"run {short} was discarded",
                hint=f"`cra replay {short}` shows whether it comes out the same again",
            )
        move = take_out if undo else bring
        repository = open_repository(workspace.repo)
        paths = move(repository, record, task_id, base=row.snapshot_commit, commit=row.result_commit)
        return AppliedResult(task_id=task_id, status=row.status, reason=row.reason, paths=paths)


def bring(repo: Repository, record: Record, task_id: str, *, base: str, commit: str) -> tuple[str, ...]:
    """Apply the run's changes from `base` to `commit` to the working tree, and record that; returns the paths, none if
    they were applied already.

    Raises:
        RepositoryError: a file that the run changed differs from the snapshot, or cannot be written.
    """
    workspace = Workspace(repo=repo.top)
    with tree_lock(workspace):
        paths = apply_to_tree(repo, base, commit, what=f"applying run {short_id(task_id)}")
    _record_event(record, task_id, EventKind.APPLIED, "\n".join(paths))
    return paths


def take_out(repo: Repository, record: Record, task_id: str, *, base: str, commit: str) -> tuple[str, ...]:
    """Restore the files that the run changed to what they were before it was applied, and record that; returns their
    paths.

    Raises:
        RepositoryError: one of them has changed since, or cannot be written.
    """
    workspace = Workspace(repo=repo.top)
    with tree_lock(workspace):
        paths = take_back(repo, base, commit, what=f"undoing run {short_id(task_id)}")
    _record_event(record, task_id, EventKind.TAKEN_BACK, "\n".join(paths))
    return paths


def _record_event(record: Record, task_id: str, kind: EventKind, detail: str) -> None:
    event = runs.EventRow(task_id=task_id, kind=kind, detail=detail, timestamp=record.now())
    record.write(runs.append_event, event)
