"""`cra runs`: the runs of this repository."""

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.cli import options, output, wiring
from clean_room_agent.cli.clock import utc_now
from clean_room_agent.cli.neutral import neutral
from clean_room_agent.cli.paging import paged
from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.raw.pruning import file_bytes, record_bytes
from clean_room_agent.db.raw.trace import RunOverview, list_overviews
from clean_room_agent.db.rows import Connection
from clean_room_agent.report.runs import render_runs
from clean_room_agent.workspace import Workspace, is_held

EMPTY = 'no runs here yet; begin with: cra solve "what is to be changed"'


@click.command()
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many, at most.")
@options.repo_option
@options.json_option
@options.exact_option
def command(limit: int, repo: Path, as_json: bool) -> int:
    """List the runs of this repository, newest first."""
    workspace = wiring.workspace_of(repo)
    found: tuple[RunOverview, ...] = ()
    if workspace.raw.exists():
        with contextlib.closing(get_connection("raw", repo_path=workspace.repo, read_only=True)) as conn:
            found = tuple(
                replace(
                    as_it_stands(workspace, entry), size=run_bytes(conn, workspace, entry.listing.task_id)
                )
                for entry in list_overviews(conn, limit=limit)
            )
    if as_json:
        output.answer_json([as_object(entry) for entry in found])
    elif found:
        shown = neutral(found)
        with paged() as console:
            console.print(render_runs(shown, utc_now()), highlight=False)
    else:
        output.answer(EMPTY if workspace.config.exists() else "no runs here yet; begin with: cra init")
    return 0


def as_it_stands(workspace: Workspace, entry: RunOverview) -> RunOverview:
    """The run, interrupted where it stands as running and no process has it in hand."""
    listing = entry.listing
    if listing.status is not RunStatus.RUNNING or is_held(workspace.task_lock(listing.task_id)):
        return entry
    return replace(entry, listing=replace(listing, status=RunStatus.INTERRUPTED))


def run_bytes(conn: Connection, workspace: Workspace, task_id: str) -> int:
    """Bytes that the run takes in the record and beside it."""
    beside = (workspace.session(task_id), workspace.run_copy(task_id))
    return record_bytes(conn, task_id) + sum(map(file_bytes, beside))


def as_object(entry: RunOverview) -> dict[str, Any]:
    """One run as `--json` answers it."""
    run, tests = entry.run, entry.tests
    return {
        **output.plain(entry.listing),
        "reason": "" if run is None else run.reason,
        "branch": "" if run is None else run.branch,
        "result_commit": "" if run is None else run.result_commit,
        "tests": output.plain(tests),
        "bytes": entry.size,
    }
