"""`cra discard`: delete a run's branch and everything else of it that stands in git."""

from pathlib import Path

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.clock import utc_now
from clean_room_agent.artifacts.event_kinds import EventKind
from clean_room_agent.cli import options, output
from clean_room_agent.db.connection import remove_database
from clean_room_agent.db.raw import events
from clean_room_agent.db.raw.orchestrator_runs import get_orchestrator_run
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.runs import find_task
from clean_room_agent.db.session import Session
from clean_room_agent.errors import UsageError
from clean_room_agent.git.repository import current_branch, open_repository
from clean_room_agent.git.result_refs import delete_ref, list_refs


@click.command()
@options.run_argument
@options.repo_option
@options.json_option
def command(run: str, repo: Path, as_json: bool) -> int:
    """Delete the branch, the snapshot and the attempts of RUN (by default the newest; `@~1`: the one before). Its record stays."""
    workspace = wiring.workspace_of(repo)
    wiring.require_record(workspace)
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
                    hint=f"if they may go too: git branch -D {row.branch}",
                )
            gone.extend(standing)
        for ref in gone:
            delete_ref(repository, ref)
        if workspace.session(task_id).exists():
            Session.open(workspace.repo, task_id, clock=utc_now).archive(record)
        remove_database(workspace.run_copy(task_id))
        event = events.EventRow(
            task_id=task_id, kind=EventKind.DISCARDED, detail="\n".join(gone), timestamp=record.now()
        )
        record.write(events.append_event, event)
    if as_json:
        output.answer_json({"task_id": task_id, "deleted": gone})
    else:
        output.answer("\n".join(f"deleted {ref}" for ref in gone) or "nothing was left of it in git")
    return 0
