"""`cra report`: write a run as one self-contained HTML page."""

import os
import webbrowser
from collections.abc import Callable
from pathlib import Path

import click
from msgspec.structs import replace

from clean_room_agent.app import wiring
from clean_room_agent.app.leftovers import status_now
from clean_room_agent.artifacts.names import NEWEST_RUN, short_id
from clean_room_agent.cli import options, output
from clean_room_agent.db.connection import read_record
from clean_room_agent.db.raw.runs import find_task
from clean_room_agent.errors import UsageError
from clean_room_agent.file_contents import atomic_write
from clean_room_agent.proc import absolute_entries
from clean_room_agent.report.calls import result_diffs
from clean_room_agent.report.page.html import is_report, run_html, run_page
from clean_room_agent.report.trace import read_trace
from clean_room_agent.workspace import Workspace, private_folder


def make_page(workspace: Workspace, run: str, safe: Callable[[str], str]) -> tuple[str, str]:
    """The task's id and the page of `run`; `safe` removes from each text what must not be shown.

    Raises:
        UsageError: there is no such run.
    """
    with read_record(workspace.repo) as conn:
        task_id = find_task(conn, run)
        trace = read_trace(conn, task_id)
        if trace.run is not None:
            status = status_now(workspace, task_id, trace.run.status)
            trace = replace(trace, run=replace(trace.run, status=status))
        result = "".join(entry.diff for entry in result_diffs(workspace, trace))
        return task_id, run_html(run_page(conn, trace, result, safe))


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
@click.argument("run", type=options.RUN, metavar="[RUN]", default=NEWEST_RUN)
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
def command(run: str, repo: Path, opened: bool, place: Path | None, force: bool, as_json: bool) -> int:
    """Write RUN as one HTML page: plan, passes, windows, decisions, prompts, diffs, tests.

    The page is self-contained: it needs no server, no network and no script. RUN is a prefix of a run's id; the newest run
    by default. Exit codes: 0 written, 2 there is no such run, or the file cannot be written.
    """
    workspace = wiring.workspace_of(repo)
    wiring.require_record(workspace)
    if place is not None:
        require_replaceable(place, force=force)
    task_id, html = make_page(workspace, run, output.safe)
    path = place or default_place(workspace, short_id(task_id))
    atomic_write(path, html, private=True)
    told: dict[str, object] = {"task_id": task_id, "path": str(path.absolute()), "bytes": len(html.encode())}
    return tell(path, told, opened=opened, as_json=as_json)


def tell(path: Path, told: dict[str, object], *, opened: bool, as_json: bool) -> int:
    """Print the page's path; open the page if requested."""
    shown = opened and _open_in_browser(path)
    if as_json:
        output.answer_json({**told, "opened": shown})
        return 0
    output.answer(str(path))
    if opened and not shown:
        output.aside("no browser could be opened; open the file above in one")
    return 0


def _open_in_browser(path: Path) -> bool:
    # It looks for programs in PATH itself: a relative entry would mean the repository.
    os.environ["PATH"] = absolute_entries(os.environ.get("PATH", os.defpath))
    return webbrowser.open(path.absolute().as_uri())
