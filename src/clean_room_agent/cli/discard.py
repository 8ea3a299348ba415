"""`cra discard`: delete a run's branch and everything else that git keeps of it."""

from pathlib import Path

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.discard import discard_run
from clean_room_agent.artifacts.names import short_id
from clean_room_agent.cli import options, output


@click.command()
@options.run_argument
@options.repo_option
@options.json_option
def command(run: str, repo: Path, as_json: bool) -> int:
    """Delete the branch, the snapshot and the attempts of RUN (the newest by default; `@~1` is the one before). Its record stays."""
    workspace = output.opened(wiring.workspace_of(repo))
    wiring.require_record(workspace)
    task_id, gone = discard_run(workspace, run)
    if as_json:
        output.answer_json({"task_id": task_id, "deleted": gone})
    else:
        output.answer(
            "\n".join(f"deleted {ref}" for ref in gone) or f"git has nothing of run {short_id(task_id)}"
        )
    return 0
