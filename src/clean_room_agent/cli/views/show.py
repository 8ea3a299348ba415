"""The sections of `cra show`: each one's data, and how it is rendered."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

from msgspec import Struct
from rich.console import RenderableType

from clean_room_agent.app.model_records import read_estimators
from clean_room_agent.artifacts.names import parse_call, row_number, short_id
from clean_room_agent.cli.safe_console import sanitized
from clean_room_agent.db.rows import Connection
from clean_room_agent.git.repository import open_repository
from clean_room_agent.report.call_texts import (
    AttemptDiff,
    call_texts,
    render_diffs,
    render_prompts,
    render_responses,
    result_diffs,
)
from clean_room_agent.report.causes import ending_on_record
from clean_room_agent.report.decisions import render_verdicts, verdicts
from clean_room_agent.report.lane_table import render_lanes
from clean_room_agent.report.render_run import render_passes, render_run
from clean_room_agent.report.run_view import pass_views, run_view
from clean_room_agent.report.summary import TestsTouched, render_touched, touched_on_record
from clean_room_agent.report.time_lanes import time_lanes
from clean_room_agent.report.trace import Chosen, RunTrace
from clean_room_agent.report.validation import render_validations, validation_lines
from clean_room_agent.report.why import render_why, require_line, why
from clean_room_agent.report.why_line import line_why, prompt_why, render_line_why, render_prompt_why
from clean_room_agent.report.windows import (
    estimator_lines,
    render_accounts,
    render_estimators,
    window_accounts,
)
from clean_room_agent.workspace import Workspace

DataT = TypeVar("DataT")


class Wanted(Struct, frozen=True, kw_only=True):
    """Which sections the flags ask for."""

    prompt: bool
    response: bool
    diff: bool
    tests: bool
    budget: bool
    decisions: bool
    time: bool
    why: str | None
    full: bool


class Section(Struct, Generic[DataT], frozen=True, kw_only=True):
    """One requested section: its key in `--json`, its data, and how it is rendered for a person."""

    key: str
    data: DataT
    render: Callable[[DataT], RenderableType]

    def show(self) -> RenderableType:
        """The data made safe for a terminal, then rendered."""
        return self.render(sanitized(self.data))


def is_patch(diffs: tuple[AttemptDiff, ...]) -> bool:
    """Whether only a whole run's change is shown, and to a program, so that it can be applied as a patch."""
    return not sys.stdout.isatty() and len(diffs) == 1 and not diffs[0].place


def chosen_sections(
    conn: Connection, workspace: Workspace, trace: RunTrace, chosen: Chosen, wanted: Wanted
) -> list[Section[Any]]:
    """The sections that the flags ask for, in a fixed order; without flags, an overview of the place."""
    sections: list[Section[Any]] = []
    if wanted.why is not None:
        sections.append(_why(conn, workspace, trace, chosen, wanted.why))
    if wanted.decisions:
        sections.append(Section(key="decisions", data=verdicts(chosen), render=render_verdicts))
    if wanted.budget:
        sections += _windows(conn, trace, chosen)
    if wanted.prompt or wanted.response:
        texts = call_texts(conn, chosen)
        if wanted.prompt:
            sections.append(Section(key="prompts", data=texts, render=render_prompts))
        if wanted.response:
            sections.append(Section(key="responses", data=texts, render=render_responses))
    if wanted.diff:
        sections.append(Section(key="diff", data=result_diffs(workspace, trace, chosen), render=render_diffs))
    if wanted.tests:
        lines = validation_lines(trace, chosen)
        sections.append(
            Section(key="tests", data=lines, render=lambda data: render_validations(data, whole=wanted.full))
        )
        touched = touched_on_record(trace.events)
        if not chosen.place and touched != TestsTouched():
            sections.append(Section(key="tests_touched", data=touched, render=render_touched))
    if wanted.time:
        sections.append(Section(key="time", data=time_lanes(trace), render=render_lanes))
    return sections or _glance(conn, trace, chosen)


def _windows(conn: Connection, trace: RunTrace, chosen: Chosen) -> list[Section[Any]]:
    """The account of each call's window, and the estimators behind it."""
    estimators = read_estimators(conn, trace.task_id) or {}
    accounts = window_accounts(conn, chosen, estimators)
    return [
        Section(key="budget", data=accounts, render=render_accounts),
        Section(key="estimators", data=estimator_lines(estimators), render=render_estimators),
    ]


def _why(conn: Connection, workspace: Workspace, trace: RunTrace, chosen: Chosen, asked: str) -> Section[Any]:
    """Why a file, a line of the result, or a line of a prompt is as it is."""
    address = _address(trace)
    named = parse_call(asked)
    if named is None:
        path, line = split_line(workspace, asked)
        data = why(conn, trace, chosen.passes, path, line)
        if line is not None:
            require_line(open_repository(workspace.repo), trace, path, line)
        return Section(key="why", data=data, render=lambda found: render_why(found, address))
    if named.line is None:
        whole = prompt_why(conn, trace, named.call_id)
        return Section(key="why", data=whole, render=render_prompt_why)
    one = line_why(conn, trace, named.call_id, named.line)
    return Section(key="why", data=one, render=lambda found: render_line_why(found, address))


def split_line(workspace: Workspace, text: str) -> tuple[str, int | None]:
    """The path as in the record (relative to the repository), and the 1-based line if one is named."""
    path, colon, number = text.rpartition(":")
    line = (row_number(number) or None) if colon else None
    path = os.path.normpath(text if line is None else path)
    top = workspace.repo
    if Path(path).is_absolute() and Path(path).is_relative_to(top):
        path = str(Path(path).relative_to(top))
    return path.replace(os.sep, "/"), line


def _glance(conn: Connection, trace: RunTrace, chosen: Chosen) -> list[Section[Any]]:
    if chosen.call is not None:
        texts = call_texts(conn, chosen)
        return [
            *_windows(conn, trace, chosen),
            Section(key="prompts", data=texts, render=render_prompts),
            Section(key="responses", data=texts, render=render_responses),
        ]
    address = _address(trace)
    if chosen.place:
        return [
            Section(key="passes", data=pass_views(chosen), render=lambda data: render_passes(data, address))
        ]
    return [
        Section(
            key="run",
            data=run_view(trace, ending_on_record(conn, trace)),
            render=lambda data: render_run(data, address),
        )
    ]


def _address(trace: RunTrace) -> Callable[[str], str]:
    """A function from a place to the command that shows it."""
    run = short_id(trace.task_id)
    return lambda place: f"cra show {run}/{place}" if place else f"cra show {run}"
