"""`cra apply`: bring a run's result into the working tree."""

from pathlib import Path

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.apply_result import bring, take_out
from clean_room_agent.app.clock import utc_now
from clean_room_agent.artifacts.event_kinds import EventKind
from clean_room_agent.cli import options, output
from clean_room_agent.db.raw import events
from clean_room_agent.db.raw.orchestrator_runs import get_orchestrator_run
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.runs import find_task
from clean_room_agent.errors import UsageError
from clean_room_agent.git.repository import open_repository


@click.command()
@options.run_argument
@options.repo_option
@click.option("--undo", is_flag=True, help="Take the result out of the working tree again.")
@options.json_option
def command(run: str, repo: Path, undo: bool, as_json: bool) -> int:
    """Bring the result of RUN (by default the newest; `@~1`: the one before) into the working tree; refused where a file it touches has changed since.

    With --undo these files are again as they were before, uncommitted work included; refused where one has changed since.
    """
    workspace = wiring.workspace_of(repo)
    wiring.require_record(workspace)
    with Record.open(workspace.repo, clock=utc_now) as record:
        task_id = record.write(find_task, run)
        row = record.write(get_orchestrator_run, task_id)
        if row is None or not row.result_commit:
            raise UsageError(f"run {run} has no result to apply", hint=f"`cra show {run}` tells how it ended")
        if any(event.kind == EventKind.DISCARDED for event in record.write(events.list_events, task_id)):
            raise UsageError(
                f"run {run} was discarded",
                hint=f"`cra replay {run}` shows whether it comes out the same again",
            )
        repository = open_repository(workspace.repo)
        move = take_out if undo else bring
        paths = move(repository, record, task_id, base=row.snapshot_commit, commit=row.result_commit)
    if as_json:
        output.answer_json({"task_id": task_id, "taken_back" if undo else "applied": paths})
    elif undo:
        output.answer(
            "\n".join(f"put back {path}" for path in paths) or "nothing to do: it does not stand there"
        )
    else:
        output.answer(
            "\n".join(f"changed {path}" for path in paths) or "nothing to do: it stands there already"
        )
    return 0
