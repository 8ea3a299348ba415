"""Discards a run: its branch, its refs and its working files are deleted, its record stays."""

from clean_room_agent.app.clock import utc_now
from clean_room_agent.artifacts.outcomes import EventKind
from clean_room_agent.db.connection import remove_database
from clean_room_agent.db.raw import runs
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.runs import find_task, get_orchestrator_run
from clean_room_agent.db.session import Session
from clean_room_agent.errors import UsageError
from clean_room_agent.git.refs import delete_ref, list_refs
from clean_room_agent.git.repository import current_branch, open_repository
from clean_room_agent.workspace import Workspace


def discard_run(workspace: Workspace, run: str) -> tuple[str, list[str]]:
    """Delete the refs of `run`, its session and its index; returns the run's id and the deleted refs.

    Raises:
        UsageError: there is no such run, or its branch is checked out or has commits of the user's own.
    """
    with Record.open(workspace.repo, clock=utc_now) as record:
        task_id = record.write(find_task, run)
        row = record.write(get_orchestrator_run, task_id)
        repository = open_repository(workspace.repo)
        gone = list(list_refs(repository, f"refs/cra/{task_id}/"))
        if row is not None and row.branch:
            branch = f"refs/heads/{row.branch}"
            if current_branch(repository) == branch:
                raise UsageError(
                    f"{row.branch} is checked out", hint="switch to another branch first: git switch -"
                )
            standing = list_refs(repository, branch)
            if standing.get(branch, row.result_commit) != row.result_commit:
                raise UsageError(
                    f"{row.branch} has commits of yours on top of the run's result",
                    hint=f"to delete them, too: git branch -D {row.branch}",
                )
            gone.extend(standing)
        for ref in gone:
            delete_ref(repository, ref)
        if workspace.session(task_id).exists():
            Session.open(workspace.repo, task_id, clock=utc_now).archive(record)
        remove_database(workspace.run_copy(task_id))
        event = runs.EventRow(
            task_id=task_id, kind=EventKind.DISCARDED, detail="\n".join(gone), timestamp=record.now()
        )
        record.write(runs.append_event, event)
    return task_id, gone
