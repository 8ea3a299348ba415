"""`cra runs`: list the runs of a repository."""

from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.leftovers import as_it_stands
from clean_room_agent.cli import options, output
from clean_room_agent.cli.safe_console import paged, sanitized
from clean_room_agent.db.connection import read_record
from clean_room_agent.db.raw.pruning import run_bytes
from clean_room_agent.db.raw.runs import RunOverview, list_overviews
from clean_room_agent.git.repository import find_top
from clean_room_agent.json_values import to_shown
from clean_room_agent.report.run_list import render_runs
from clean_room_agent.workspace import trusted_workspace

EMPTY = 'no runs here yet; begin with: cra solve "what to change"'


def as_object(entry: RunOverview) -> dict[str, Any]:
    """One run as `--json` answers it."""
    told = to_shown(entry)
    del told["is_run"], told["discarded"]
    return {**told, "bytes": told.pop("size")}


@click.command()
@click.option("--limit", type=options.number(1), default=20, show_default=True, help="At most this many.")
@options.repo_option
@options.json_option
@options.exact_option
def command(limit: int, repo: Path, as_json: bool) -> int:
    """List the runs of this repository, newest first."""
    # As `app.wiring.workspace_of`, which imports all that a run needs.
    workspace = trusted_workspace(find_top(repo.absolute()))
    found: tuple[RunOverview, ...] = ()
    if workspace.raw.exists():
        with read_record(workspace.repo) as conn:
            found = tuple(
                replace(as_it_stands(workspace, entry), size=run_bytes(conn, workspace, entry.task_id))
                for entry in list_overviews(conn, limit=limit)
            )
    if as_json:
        output.answer_json([as_object(entry) for entry in found])
    elif found:
        shown = sanitized(found)
        with paged() as console:
            console.print(render_runs(shown, utc_now()), highlight=False)
    else:
        output.answer(EMPTY if workspace.config.exists() else "no runs here yet; begin with: cra init")
    return 0
