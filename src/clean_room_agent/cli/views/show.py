"""The sections of `cra show`: each one's data, as `--json` answers it and as it is rendered."""

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from msgspec import Struct
from rich.console import Group, RenderableType

from clean_room_agent.artifacts.names import parse_call, row_number, short_id
from clean_room_agent.cli.safe_console import sanitized
from clean_room_agent.db.rows import Connection
from clean_room_agent.git.repository import open_repository
from clean_room_agent.json_values import to_shown
from clean_room_agent.report import call_texts, run_view, validation, why_line, windows
from clean_room_agent.report.causes import ending_on_record
from clean_room_agent.report.decisions import render_verdicts, verdicts
from clean_room_agent.report.summary import TestsTouched, touched_lines, touched_on_record
from clean_room_agent.report.time_lanes import render_lanes, time_lanes
from clean_room_agent.report.trace import RunTrace
from clean_room_agent.report.why import render_why, require_line, why
from clean_room_agent.workspace import Workspace

DataT = TypeVar("DataT")


class WantedSections(Struct, frozen=True, kw_only=True):
    """Which sections the flags ask for."""

    prompt: bool = False
    response: bool = False
    diff: bool = False
    tests: bool = False
    budget: bool = False
    decisions: bool = False
    time: bool = False
    why: str | None = None
    full: bool = False


class Section(Struct, Generic[DataT], frozen=True, kw_only=True):
    """One requested section."""

    key: str
    """In `--json`."""
    data: DataT
    render: Callable[[DataT], RenderableType]
    as_object: Callable[[DataT], Any] = to_shown

    def show(self) -> RenderableType:
        """The data made safe for a terminal, then rendered."""
        return self.render(sanitized(self.data))


def is_patch(diffs: tuple[call_texts.AttemptDiff, ...]) -> bool:
    """Whether only a whole run's change is shown, and to a program, so that it can be applied as a patch."""
    return not sys.stdout.isatty() and len(diffs) == 1 and not diffs[0].place


def chosen_sections(
    conn: Connection, workspace: Workspace, trace: RunTrace, chosen: RunTrace, wanted: WantedSections
) -> list[Section[Any]]:
    """The sections that the flags ask for about the `chosen` part of the run, in a fixed order; without flags, an overview."""
    sections: list[Section[Any]] = []
    if wanted.why is not None:
        sections.append(_why(conn, workspace, trace, chosen, wanted.why))
    if wanted.decisions:
        sections.append(Section(key="decisions", data=verdicts(chosen.passes), render=render_verdicts))
    if wanted.budget:
        sections.append(_windows(conn, chosen))
    texts = call_texts.call_texts(conn, chosen) if wanted.prompt or wanted.response else ()
    if wanted.prompt:
        sections.append(_texts("prompts", texts, call_texts.render_prompts))
    if wanted.response:
        sections.append(_texts("responses", texts, call_texts.render_responses))
    if wanted.diff:
        diffs = call_texts.result_diffs(workspace, chosen)
        sections.append(Section(key="diff", data=diffs, render=call_texts.render_diffs))
    if wanted.tests:
        render_tests = partial(validation.render_tests, whole=wanted.full)
        sections.append(
            Section(
                key="tests",
                data=validation.placed_tests(chosen),
                render=render_tests,
                as_object=validation.tests_object,
            )
        )
        touched = touched_on_record(trace.events)
        if not chosen.place and touched != TestsTouched():
            sections.append(
                Section(key="tests_touched", data=touched, render=lambda data: Group(*touched_lines(data)))
            )
    if wanted.time:
        sections.append(Section(key="time", data=time_lanes(trace), render=render_lanes))
    return sections or _glance(conn, chosen)


def _windows(conn: Connection, chosen: RunTrace) -> Section[Any]:
    uses = windows.window_uses(conn, chosen)
    return Section(key="budget", data=uses, render=windows.render_windows, as_object=windows.windows_object)


def _texts(key: str, texts: tuple[call_texts.CallTexts, ...], render: Callable[[Any], Any]) -> Section[Any]:
    return Section(key=key, data=texts, render=render, as_object=call_texts.texts_object)


def _why(
    conn: Connection, workspace: Workspace, trace: RunTrace, chosen: RunTrace, asked: str
) -> Section[Any]:
    """Why a file, a line of the result, or a line of a prompt is as it is."""
    named = parse_call(asked)
    if named is None:
        path, line = split_line(workspace, asked)
        data = why(conn, trace, chosen, path, line)
        if line is not None:
            require_line(open_repository(workspace.repo), trace, path, line)
        return Section(key="why", data=data, render=lambda found: render_why(found, _address(trace)))
    found = why_line.prompt_why(conn, trace, named.call_id, named.line)
    render = why_line.render_prompt_why if named.line is None else why_line.render_line_why
    return Section(key="why", data=found, render=render)


def split_line(workspace: Workspace, text: str) -> tuple[str, int | None]:
    """The path as in the record (relative to the repository), and the 1-based line if one is named."""
    path, colon, number = text.rpartition(":")
    line = (row_number(number) or None) if colon else None
    path = os.path.normpath(text if line is None else path)
    top = workspace.repo
    if Path(path).is_absolute() and Path(path).is_relative_to(top):
        path = str(Path(path).relative_to(top))
    return path.replace(os.sep, "/"), line


def _glance(conn: Connection, chosen: RunTrace) -> list[Section[Any]]:
    if chosen.place.startswith("call:"):
        texts = call_texts.call_texts(conn, chosen)
        return [
            _windows(conn, chosen),
            _texts("prompts", texts, call_texts.render_prompts),
            _texts("responses", texts, call_texts.render_responses),
        ]
    address = _address(chosen)
    if chosen.place:
        return [
            Section(
                key="passes",
                data=run_view.outline(chosen),
                render=lambda part: run_view.render_passes(part, address),
                as_object=run_view.passes_object,
            )
        ]
    return [
        Section(
            key="run",
            data=(run_view.outline(chosen), ending_on_record(conn, chosen)),
            render=lambda data: run_view.render_run(*data, address),
            as_object=lambda data: run_view.run_object(*data),
        )
    ]


def _address(trace: RunTrace) -> Callable[[str], str]:
    """A function from a place to the command that shows it."""
    run = short_id(trace.task_id)
    return lambda place: f"cra show {run}/{place}" if place else f"cra show {run}"
