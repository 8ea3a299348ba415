"""Deletes what a pruning plan names; if it is killed at any moment, each run is either complete or gone."""

import json
from pathlib import Path

from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.leftovers import reap, task_lock
from clean_room_agent.app.pruning import LOSING, Piece, Plan, PrunedRun, Site, repository_stands
from clean_room_agent.artifacts.names import short_id
from clean_room_agent.artifacts.outcomes import EventKind
from clean_room_agent.db.connection import remove_database
from clean_room_agent.db.raw.pruning import compact_record, delete_tasks
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.runs import EventRow, append_event
from clean_room_agent.errors import GitError, RepositoryError, UsageError
from clean_room_agent.folders import remove_abandoned, remove_tree
from clean_room_agent.git.branches import delete_branch
from clean_room_agent.git.refs import delete_ref


def carry_out(site: Site, plan: Plan) -> tuple[str, ...]:
    """Delete what the plan names, except for what is in use by now; returns notes for the user.

    A run is marked as pruned in the record before anything of it is deleted, and its rows are deleted last, at once. If
    this is interrupted, the record has each run completely or not at all, and the next start continues.
    """
    notes: list[str] = []
    if site.workspace.raw.exists():
        notes += reap(site.workspace, site.repo, site.worktrees)
        with Record.open(site.workspace.repo, clock=utc_now) as record:
            for run in plan.runs:
                try:
                    with task_lock(site.workspace, run.task_id, patience=0):
                        notes += _prune_run(site, record, run)
                except UsageError as error:
                    notes.append(f"run {short_id(run.task_id)} was left alone: {error.message}")
    for piece in plan.others:
        if piece.kind == "refs":
            delete_ref(site.repo, piece.name)
            continue
        notes += _remove(piece)
    if any(piece.kind == "record" for piece in plan.pieces) and not compact_record(site.workspace):
        notes.append(
            "the record is open in another process: its file gets smaller with the next `cra prune --yes`"
        )
    return tuple(notes)


def _prune_run(site: Site, record: Record, run: PrunedRun) -> list[str]:
    """Returns which branches are in use by now and were kept."""
    kept = []
    kinds = sorted({piece.kind for piece in run.pieces})
    if LOSING & {*kinds}:
        said = EventRow(
            task_id=run.task_id, kind=EventKind.PRUNED, detail=json.dumps(kinds), timestamp=record.now()
        )
        record.write(append_event, said)
    for piece in run.pieces:
        if piece.kind == "branches":
            try:
                delete_branch(site.repo, piece.name.removeprefix("refs/heads/"), piece.tip)
            except (GitError, RepositoryError) as error:
                kept.append(f"kept: {error.message}")
        elif piece.kind == "refs":
            delete_ref(site.repo, piece.name)
        elif piece.kind in {"sessions", "index-copies"}:
            remove_database(Path(piece.name))
    if "record" in kinds:
        record.write(delete_tasks, (run.task_id,))
    return kept


def _remove(piece: Piece) -> tuple[str, ...]:
    """Delete the file or folder; returns why that failed, or ""."""
    path = Path(piece.name)
    try:
        if piece.kind == "temporary":
            remove_abandoned(path)
        elif not (piece.kind == "worktrees" and _is_linked(path)):
            remove_tree(path)
    except OSError as error:
        return (f"{path} cannot be removed: {error.strerror or error}",)
    return ()


def _is_linked(path: Path) -> bool:
    """Whether it is a worktree of an existing repository, which only `reap` removes, together with git's metadata."""
    return (path / ".git").is_file() and repository_stands(path / ".git")
