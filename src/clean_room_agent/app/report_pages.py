"""Builds the HTML pages of `cra report`, for a run or for all, and checks where they may be written."""

import contextlib
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.app.listed_runs import status_now
from clean_room_agent.app.model_records import read_estimators
from clean_room_agent.artifacts.names import short_id
from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.raw.calls import list_prompt_spans
from clean_room_agent.db.raw.runs import find_task
from clean_room_agent.db.rows import Connection
from clean_room_agent.errors import UsageError
from clean_room_agent.json_values import change_texts
from clean_room_agent.report.call_texts import call_texts, result_diffs
from clean_room_agent.report.causes import ending_on_record
from clean_room_agent.report.trace import Chosen, RunTrace, read_trace
from clean_room_agent.report.windows import window_accounts
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
            return Page(name="all", task_id="", html=page_of_all(conn, safe))
        task_id = find_task(conn, run)
        trace = _as_it_stands(workspace, read_trace(conn, task_id))
        return Page(name=short_id(task_id), task_id=task_id, html=page_of_run(conn, workspace, trace, safe))


def page_of_run(conn: Connection, workspace: Workspace, trace: RunTrace, safe: Callable[[str], str]) -> str:
    """The page as HTML; `safe` removes from each text what must not be shown."""
    from clean_room_agent.report.page.html import run_html
    from clean_room_agent.report.page.run_page import RunSources, run_page

    chosen = Chosen(place="", passes=trace.passes)
    sources = RunSources(
        trace=trace,
        ending=ending_on_record(conn, trace),
        texts=call_texts(conn, chosen),
        spans=list_prompt_spans(conn, trace.task_id),
        accounts=window_accounts(conn, chosen, read_estimators(conn, trace.task_id) or {}),
        result_diff="".join(entry.diff for entry in result_diffs(workspace, trace, chosen)),
    )
    return run_html(change_texts(run_page(sources, safe), safe))


def page_of_all(conn: Connection, safe: Callable[[str], str]) -> str:
    """The page of all runs as HTML; `safe` as above."""
    from clean_room_agent.db.raw.analysis import list_run_costs
    from clean_room_agent.report.page.html import runs_html
    from clean_room_agent.report.page.runs_page import runs_page
    from clean_room_agent.training.credit import waterfall_of
    from clean_room_agent.training.logs import LogAnalysisAPI

    page = runs_page(list_run_costs(conn), waterfall_of(LogAnalysisAPI(conn).tasks()))
    return runs_html(change_texts(page, safe))


def _as_it_stands(workspace: Workspace, trace: RunTrace) -> RunTrace:
    """The run with its current status."""
    run = trace.run
    if run is None:
        return trace
    return replace(trace, run=replace(run, status=status_now(workspace, trace.task_id, run.status)))


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
