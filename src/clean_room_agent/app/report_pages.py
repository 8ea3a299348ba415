"""Builds the HTML pages of `cra report`, for a run or for all, and checks where they may be written."""

import contextlib
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.app.listed_runs import status_now
from clean_room_agent.artifacts.names import short_id
from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.raw.analysis import list_run_costs
from clean_room_agent.db.raw.runs import find_task
from clean_room_agent.errors import UsageError
from clean_room_agent.json_values import change_texts
from clean_room_agent.report.call_texts import result_diffs
from clean_room_agent.report.trace import read_trace
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
    from clean_room_agent.report.page.html import run_html, runs_html
    from clean_room_agent.report.page.run_page import run_page
    from clean_room_agent.report.page.runs_page import runs_page
    from clean_room_agent.training.credit import waterfall_of
    from clean_room_agent.training.logs import LogAnalysisAPI

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
    from clean_room_agent.report.page.html import is_report

    try:
        if place.is_file() and not force and not is_report(place):
            raise UsageError(f"{place} already exists and is not a report", hint="overwrite it with --force")
    except OSError as exc:
        raise UsageError(
            f"cannot read {place}: {exc.strerror or exc}", hint="name another file: -o FILE"
        ) from exc
