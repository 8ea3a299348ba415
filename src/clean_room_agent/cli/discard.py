"""`cra discard`: delete a run's branch and everything else that git keeps of it."""

from pathlib import Path

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.leftovers import delete_refs, task_lock
from clean_room_agent.artifacts.names import short_id
from clean_room_agent.artifacts.outcomes import EventKind
from clean_room_agent.cli import options, output
from clean_room_agent.db.connection import remove_database
from clean_room_agent.db.raw import runs
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.runs import find_task, get_orchestrator_run
from clean_room_agent.db.session import Session
from clean_room_agent.git.refs import branch_tip, delete_branch
from clean_room_agent.git.repository import open_repository
from clean_room_agent.workspace import Workspace


def discard_run(workspace: Workspace, run: str) -> tuple[str, list[str]]:
    """Delete the refs of `run`, its session and its index; returns the run's id and the deleted refs.

    Raises:
        UsageError: there is no such run, it is in progress, or a worktree uses its branch, or that has commits of the user's own.
    """
    with Record.open(workspace.repo, clock=utc_now) as record:
        task_id = record.write(find_task, run)
        with task_lock(workspace, task_id):
            return task_id, _discard_run(workspace, record, task_id)


def _discard_run(workspace: Workspace, record: Record, task_id: str) -> list[str]:
    """Delete what the run has, its branch first: that may be refused. Returns the deleted refs."""
    row = record.write(get_orchestrator_run, task_id)
    repository = open_repository(workspace.repo)
    gone: list[str] = []
    if row is not None and row.branch and branch_tip(repository, row.branch):
        delete_branch(repository, row.branch, row.result_commit)
        gone.append(f"refs/heads/{row.branch}")
    gone += delete_refs(repository, task_id)
    if workspace.session(task_id).exists():
        Session.open(workspace.repo, task_id, clock=utc_now).archive(record)
    remove_database(workspace.run_copy(task_id))
    event = runs.EventRow(
        task_id=task_id, kind=EventKind.DISCARDED, detail="\n".join(gone), timestamp=record.now()
    )
    record.write(runs.append_event, event)
    return gone


@click.command()
@options.run_argument
@options.repo_option
@options.json_option
def command(run: str, repo: Path, as_json: bool) -> int:
    """Delete the branch, the snapshot and the attempts of RUN (the newest by default; `@~1` is the one before). Its record stays."""
    workspace = wiring.workspace_of(repo)
    wiring.require_record(workspace)
    task_id, gone = discard_run(workspace, run)
    if as_json:
        output.answer_json({"task_id": task_id, "deleted": gone})
    else:
        output.answer(
            "\n".join(f"deleted {ref}" for ref in gone) or f"git has nothing of run {short_id(task_id)}"
        )
    return 0
