"""`cra report`: write a run, or all runs, as one self-contained HTML page."""

import contextlib
import os
import webbrowser
from collections.abc import Callable
from pathlib import Path

import click
from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.app import wiring
from clean_room_agent.app.leftovers import status_now
from clean_room_agent.artifacts.names import NEWEST_RUN, short_id
from clean_room_agent.cli import options, output
from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.raw.analysis import list_run_costs
from clean_room_agent.db.raw.runs import find_task
from clean_room_agent.errors import UsageError
from clean_room_agent.file_contents import atomic_write
from clean_room_agent.json_values import change_texts
from clean_room_agent.proc import absolute_entries
from clean_room_agent.report.calls import result_diffs
from clean_room_agent.report.page.html import is_report, run_html, run_page, runs_html, runs_page
from clean_room_agent.report.trace import read_trace
from clean_room_agent.training.credit import waterfall_of
from clean_room_agent.training.logs import LogAnalysisAPI
from clean_room_agent.workspace import Workspace, private_folder


class Page(Struct, frozen=True, kw_only=True):
    """A page before it is written."""

    name: str
    """A short id, or "all"."""
    task_id: str
    """"" for the page of all runs."""
    html: str


def make_page(workspace: Workspace, run: str, *, of_all: bool, safe: Callable[[str], str]) -> Page:
    """The page of `run`, or of all runs; `safe` removes from each text what must not be shown.

    Raises:
        UsageError: there is no such run.
    """
    with contextlib.closing(get_connection("raw", repo_path=workspace.repo, read_only=True)) as conn:
        if of_all:
            page = runs_page(list_run_costs(conn), waterfall_of(LogAnalysisAPI(conn).tasks()))
            return Page(name="all", task_id="", html=runs_html(change_texts(page, safe)))
        task_id = find_task(conn, run)
        trace = read_trace(conn, task_id)
        if trace.run is not None:
            status = status_now(workspace, task_id, trace.run.status)
            trace = replace(trace, run=replace(trace.run, status=status))
        result = "".join(entry.diff for entry in result_diffs(workspace, trace))
        html = run_html(run_page(conn, trace, result, safe))
        return Page(name=short_id(task_id), task_id=task_id, html=html)


def default_place(workspace: Workspace, name: str) -> Path:
    """The path in `.clean_room/reports`, which is created, and which no snapshot of the working tree includes."""
    return private_folder(workspace.folder / "reports") / f"cra-report-{name}.html"


def require_replaceable(place: Path, *, force: bool) -> None:
    """Check that a page may be written there.

    Raises:
        UsageError: there is a file that is not a report, or it cannot be read.
    """
    try:
        if place.is_file() and not force and not is_report(place):
            raise UsageError(f"{place} already exists and is not a report", hint="overwrite it with --force")
    except OSError as exc:
        raise UsageError(
            f"cannot read {place}: {exc.strerror or exc}", hint="name another file: -o FILE"
        ) from exc


@click.command()
@click.argument("run", type=options.RUN, metavar="[RUN]", default="")
@click.option(
    "--all",
    "of_all",
    is_flag=True,
    help="Report on all runs: over time, by model, where tasks were lost, costs.",
)
@options.repo_option
@click.option("--open", "opened", is_flag=True, help="Open the page in your browser.")
@click.option(
    "-o",
    "--output",
    "place",
    type=options.OUTPUT_FILE,
    help="Where to write it; in .clean_room/reports by default.",
)
@click.option("--force", is_flag=True, help="Overwrite a file that is not a report.")
@options.json_option
@options.exact_option
def command(
    run: str, of_all: bool, repo: Path, opened: bool, place: Path | None, force: bool, as_json: bool
) -> int:
    """Write RUN as one HTML page: plan, passes, windows, decisions, prompts, diffs, tests.

    The page is self-contained: it needs no server, no network and no script. RUN is a prefix of a run's id; the newest run
    by default. Exit codes: 0 written, 2 there is no such run, or the file cannot be written.
    """
    if of_all and run:
        raise UsageError("--all reports on all runs", hint="leave out either RUN or --all")
    workspace = wiring.workspace_of(repo)
    wiring.require_record(workspace)
    if place is not None:
        require_replaceable(place, force=force)
    page = make_page(workspace, run or NEWEST_RUN, of_all=of_all, safe=output.safe)
    path = place or default_place(workspace, page.name)
    atomic_write(path, page.html, private=True)
    told: dict[str, object] = {
        "task_id": page.task_id,
        "path": str(path.absolute()),
        "bytes": len(page.html.encode()),
    }
    return tell(path, told, opened=opened, as_json=as_json)


def tell(path: Path, told: dict[str, object], *, opened: bool, as_json: bool) -> int:
    """Print the page's path; open the page if requested."""
    shown = opened and _open(path)
    if as_json:
        output.answer_json({**told, "opened": shown})
        return 0
    output.answer(str(path))
    if opened and not shown:
        output.aside("no browser could be opened; open the file above in one")
    return 0


def _open(path: Path) -> bool:
    # It looks for programs in PATH itself: a relative entry would mean the repository.
    os.environ["PATH"] = absolute_entries(os.environ.get("PATH", os.defpath))
    return webbrowser.open(path.absolute().as_uri())
