"""Applies a run's result to the working tree, and undoes that."""

from clean_room_agent.app.clock import utc_now
from clean_room_agent.artifacts.names import short_id
from clean_room_agent.artifacts.outcomes import EventKind
from clean_room_agent.db.raw import runs
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.runs import find_task, get_orchestrator_run
from clean_room_agent.errors import UsageError
from clean_room_agent.git.apply_result import apply_to_tree, take_back
from clean_room_agent.git.repository import Repository, open_repository
from clean_room_agent.workspace import Workspace, tree_lock


def apply_run(
    workspace: Workspace, run: str, *, undo: bool
) -> tuple[runs.OrchestratorRunRow, tuple[str, ...]]:
    """Apply the result of `run` to the working tree, or `undo` that; returns the run and the changed paths.

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
        repository = open_repository(workspace.repo)
        base, commit = row.snapshot_commit, row.result_commit
        paths = bring(repository, record, task_id, base=base, commit=commit, undo=undo)
        return row, paths


def bring(
    repo: Repository, record: Record, task_id: str, *, base: str, commit: str, undo: bool = False
) -> tuple[str, ...]:
    """Apply the run's changes from `base` to `commit` to the working tree, or restore the files that they changed (`undo`), and
    record that; returns the paths, none if it was done already.

    Raises:
        RepositoryError: a file differs from what it was before (or after) the changes, or cannot be written.
    """
    change, kind, what = apply_to_tree, EventKind.APPLIED, "applying"
    if undo:
        change, kind, what = take_back, EventKind.TAKEN_BACK, "undoing"
    with tree_lock(Workspace(repo=repo.top)):
        paths = change(repo, base, commit, what=f"{what} run {short_id(task_id)}")
    event = runs.EventRow(task_id=task_id, kind=kind, detail="\n".join(paths), timestamp=record.now())
    record.write(runs.append_event, event)
    return paths
