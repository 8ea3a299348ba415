"""`cra report`: a run as one HTML page that needs nothing else."""

import contextlib
import os
from dataclasses import replace
from pathlib import Path

import click

from clean_room_agent.artifacts.ids import NEWEST_RUN, short_id
from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.cli import options, output, wiring
from clean_room_agent.cli.gauges import read_gauges
from clean_room_agent.cli.neutral import neutral
from clean_room_agent.cli.show import BY_NAME, ending_on_record, result_diffs
from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.raw.runs import find_task
from clean_room_agent.db.rows import Connection
from clean_room_agent.errors import UsageError
from clean_room_agent.report.texts import call_texts
from clean_room_agent.report.trace import Chosen, RunTrace, read_trace
from clean_room_agent.report.windows import window_accounts
from clean_room_agent.surroundings import absolute_entries
from clean_room_agent.whole_file import write_whole
from clean_room_agent.workspace import Workspace, is_held, private_folder


@click.command()
@click.argument("run", type=options.RUN, metavar="[RUN]", default="")
@click.option(
    "--all", "of_all", is_flag=True, help="All runs: over time, by model, where they were lost, costs."
)
@options.repo_option
@click.option("--open", "opened", is_flag=True, help="Open the page in your browser.")
@click.option(
    "-o",
    "--output",
    "place",
    type=click.Path(path_type=Path),
    help="Where to write it; by default in .clean_room/reports.",
)
@click.option("--force", is_flag=True, help="Write over a file that is no report.")
@options.json_option
@options.exact_option
def command(
    run: str, of_all: bool, repo: Path, opened: bool, place: Path | None, force: bool, as_json: bool
) -> int:
    """Write RUN as one HTML page: plan, passes, windows, decisions, prompts, diffs, tests.

    The page holds all that it shows: it needs no server, no network and no script to be read. RUN is the beginning of a
    run's id; the newest by default. Ends with 0; 2 where there is no such run, or the file cannot be written.
    """
    if of_all and run:
        raise UsageError("--all is about every run", hint="leave RUN out, or --all")
    workspace = wiring.workspace_of(repo)
    options.require_record(workspace)
    if place is not None:
        require_replaceable(place, force=force)
    with contextlib.closing(get_connection("raw", repo_path=workspace.repo, read_only=True)) as conn:
        if of_all:
            name, task_id, page = "all", "", page_of_all(conn)
        else:
            found = find_task(conn, run.removeprefix("cra/") or NEWEST_RUN)
            trace = as_it_stands(workspace, read_trace(conn, found))
            name, task_id, page = short_id(found), found, page_of_run(conn, workspace, trace)
    path = place or default_place(workspace, name)
    write_whole(path, page, private=True)
    told = {"task_id": task_id, "path": str(path.absolute()), "bytes": len(page.encode())}
    return tell(path, told, opened=opened, as_json=as_json)


def page_of_run(conn: Connection, workspace: Workspace, trace: RunTrace) -> str:
    """The page as HTML, without secrets unless they were asked for, and with nothing in it that cannot be seen."""
    from clean_room_agent.report.page.html import run_html
    from clean_room_agent.report.page.run_page import RunSources, run_page

    chosen = Chosen(place="", passes=trace.passes)
    sources = RunSources(
        trace=trace,
        ending=ending_on_record(conn, trace),
        texts=call_texts(conn, chosen),
        accounts=window_accounts(conn, trace, chosen, BY_NAME, read_gauges(conn, trace.task_id) or {}),
        result_diff="".join(entry.diff for entry in result_diffs(workspace, trace, chosen)),
    )
    return run_html(neutral(run_page(sources, output.safe)))


def page_of_all(conn: Connection) -> str:
    """The page of all runs as HTML, likewise."""
    from clean_room_agent.db.raw.run_costs import list_run_costs
    from clean_room_agent.report.page.html import runs_html
    from clean_room_agent.report.page.runs_page import runs_page
    from clean_room_agent.training.credit import waterfall_of
    from clean_room_agent.training.logs import LogAnalysisAPI

    return runs_html(neutral(runs_page(list_run_costs(conn), waterfall_of(LogAnalysisAPI(conn).tasks()))))


def as_it_stands(workspace: Workspace, trace: RunTrace) -> RunTrace:
    """The run, interrupted where it stands as running and no process has it in hand."""
    run = trace.run
    if run is None or run.status is not RunStatus.RUNNING or is_held(workspace.task_lock(trace.task_id)):
        return trace
    return replace(trace, run=replace(run, status=RunStatus.INTERRUPTED))


def default_place(workspace: Workspace, name: str) -> Path:
    """Within our own folder, where no snapshot of the working tree finds it; the folder is there afterwards."""
    return private_folder(workspace.folder / "reports") / f"cra-report-{name}.html"


def require_replaceable(place: Path, *, force: bool) -> None:
    """Nothing happens where a page may be written.

    Raises:
        UsageError: there is no such folder, or something stands there that is no report.
    """
    from clean_room_agent.report.page.html import is_report

    if place.is_dir() or not place.parent.is_dir():
        told = "is a folder" if place.is_dir() else "is in a folder that does not exist"
        raise UsageError(f"{place} {told}", hint="name a file: -o FILE")
    try:
        if place.is_file() and not force and not is_report(place):
            raise UsageError(f"{place} is there already and is no report", hint="--force writes over it")
    except OSError as exc:
        raise UsageError(
            f"cannot read {place}: {exc.strerror or exc}", hint="name another file: -o FILE"
        ) from exc


def tell(path: Path, told: dict[str, object], *, opened: bool, as_json: bool) -> int:
    """The page is open where that was asked for and works, and its place is said."""
    shown = opened and _open(path)
    if as_json:
        output.answer_json({**told, "opened": shown})
        return 0
    output.answer(str(path))
    if opened and not shown:
        output.aside("no browser could be opened; open the file above in one")
    return 0


def _open(path: Path) -> bool:
    import webbrowser

    # It looks for programs in PATH itself: an entry that means "here" would be the repository.
    os.environ["PATH"] = absolute_entries(os.environ.get("PATH", os.defpath))
    return webbrowser.open(path.absolute().as_uri())
