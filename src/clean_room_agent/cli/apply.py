"""`cra apply`: apply a run's result to the working tree, or undo that."""

from pathlib import Path

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.apply_result import apply_run
from clean_room_agent.artifacts.names import short_id
from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.cli import options, output


@click.command()
@options.run_argument
@options.repo_option
@click.option("--undo", is_flag=True, help="Undo it: restore the files as they were before.")
@options.json_option
def command(run: str, repo: Path, undo: bool, as_json: bool) -> int:
    """Apply the result of RUN (the newest by default; `@~1` is the one before) to the working tree.

    A result that is partial, or that no test shows to be right, is applied likewise, and it is said. Refused if a file that it touches has changed since the run began. With --undo, these files are restored as they were
    before, including uncommitted work; refused if one of them has changed since.
    """
    workspace = wiring.workspace_of(repo)
    wiring.require_record(workspace)
    row, paths = apply_run(workspace, run, undo=undo)
    if not undo and row.status is not RunStatus.COMPLETE:
        output.aside(f"run {short_id(row.task_id)} is {row.status}: {row.reason}")
    if as_json:
        key = "taken_back" if undo else "applied"
        output.answer_json({"task_id": row.task_id, "status": row.status.value, key: paths})
        return 0
    did, state = ("put back", "not applied") if undo else ("changed", "applied already")
    lines = [f"{did} {path}" for path in paths] or [f"nothing to do: run {short_id(row.task_id)} is {state}"]
    output.answer("\n".join(lines))
    return 0
