"""`cra apply`: apply a run's result to the working tree, or undo that."""

from pathlib import Path

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.apply_result import apply_run
from clean_room_agent.cli import options, output


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
    task_id, paths = apply_run(workspace, run, undo=undo)
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
