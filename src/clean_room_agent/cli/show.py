"""`cra show`: look into a run, down to a single prompt."""

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import click
from msgspec import Struct
from rich.console import Group, RenderableType

from clean_room_agent.app import wiring
from clean_room_agent.artifacts.names import NEWEST_RUN, parse_call, row_number, short_id, split_place
from clean_room_agent.cli import options, output
from clean_room_agent.cli.safe_console import paged, sanitized
from clean_room_agent.db.connection import read_record
from clean_room_agent.db.raw.runs import find_task
from clean_room_agent.db.rows import Connection
from clean_room_agent.git.repository import open_repository
from clean_room_agent.json_values import to_shown
from clean_room_agent.report import calls, prompt_lines, run_view, validation
from clean_room_agent.report.causes import ending_on_record
from clean_room_agent.report.decisions import render_verdicts, verdicts
from clean_room_agent.report.summary import TestsTouched, touched_lines, touched_on_record
from clean_room_agent.report.time_lanes import render_lanes, time_lanes
from clean_room_agent.report.trace import RunTrace, choose, read_trace
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


def is_patch(diffs: tuple[calls.AttemptDiff, ...]) -> bool:
    """Whether only a whole run's change is shown, and to a program, so that it can be applied as a patch."""
    return not sys.stdout.isatty() and len(diffs) == 1 and not diffs[0].place


def chosen_sections(
    conn: Connection, workspace: Workspace, trace: RunTrace, chosen: RunTrace, wanted: WantedSections
) -> list[Section[Any]]:
    """The sections that the flags ask for about the `chosen` part of the run, in a fixed order; without flags, an overview."""
    sections: list[Section[Any]] = []
    if wanted.why is not None:
        sections.append(_why_section(conn, workspace, trace, chosen, wanted.why))
    if wanted.decisions:
        sections.append(Section(key="decisions", data=verdicts(chosen.passes), render=render_verdicts))
    if wanted.budget:
        sections.append(_windows_section(conn, chosen))
    texts = calls.call_texts(conn, chosen) if wanted.prompt or wanted.response else ()
    if wanted.prompt:
        sections.append(_texts_section("prompts", texts, calls.render_prompts))
    if wanted.response:
        sections.append(_texts_section("responses", texts, calls.render_responses))
    if wanted.diff:
        diffs = calls.result_diffs(workspace, chosen)
        sections.append(Section(key="diff", data=diffs, render=calls.render_diffs))
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
    return sections or _default_sections(conn, workspace, chosen)


def _windows_section(conn: Connection, chosen: RunTrace) -> Section[Any]:
    uses = calls.window_uses(conn, chosen)
    return Section(key="budget", data=uses, render=calls.render_windows, as_object=calls.windows_object)


def _texts_section(
    key: str, texts: tuple[calls.CallTexts, ...], render: Callable[[Any], Any]
) -> Section[Any]:
    return Section(key=key, data=texts, render=render, as_object=calls.texts_object)


def _why_section(
    conn: Connection, workspace: Workspace, trace: RunTrace, chosen: RunTrace, asked: str
) -> Section[Any]:
    """Why a file, a line of the result, or a line of a prompt is as it is."""
    named = parse_call(asked)
    if named is None:
        path, line = split_line(workspace, asked)
        data = why(conn, trace, chosen, path, line)
        if line is not None:
            require_line(open_repository(workspace.repo), trace, path, line)
        address = _command_formatter(trace, output.repo_flag(workspace))
        return Section(key="why", data=data, render=lambda found: render_why(found, address))
    found = prompt_lines.prompt_why(conn, trace, named.call_id, named.line)
    render = prompt_lines.render_prompt_why if named.line is None else prompt_lines.render_line_why
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


def _default_sections(conn: Connection, workspace: Workspace, chosen: RunTrace) -> list[Section[Any]]:
    if chosen.place.startswith("call:"):
        texts = calls.call_texts(conn, chosen)
        return [
            _windows_section(conn, chosen),
            _texts_section("prompts", texts, calls.render_prompts),
            _texts_section("responses", texts, calls.render_responses),
        ]
    there = output.repo_flag(workspace)
    address = _command_formatter(chosen, there)
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
            render=lambda data: run_view.render_run(*data, address, there),
            as_object=lambda data: run_view.run_object(*data),
        )
    ]


def _command_formatter(trace: RunTrace, there: str) -> Callable[[str], str]:
    """A function from a place to the command that shows it; `there` is the flag that it needs."""
    run = short_id(trace.task_id)
    return lambda place: f"cra show {run}/{place}{there}" if place else f"cra show {run}{there}"


HELP = """Look into RUN, or into one PLACE of it.

\b
RUN    a unique prefix of a run's id, or its branch; @ is the newest run (the default), @~1 the one before
PLACE  meta_plan    the pass that divides the task into parts
       part         all passes of a part
       part/step    a step: its attempts, and what followed
       part/step/2  its second attempt
       call:15      a model call

Other passes have the names that `cra show RUN` prints.
"""


@click.command(help=HELP)
@click.argument("where", type=options.RUN, metavar="[RUN[/PLACE]]", default=NEWEST_RUN)
@options.repo_option
@click.option("--prompt", is_flag=True, help="Each call's prompt.")
@click.option("--response", is_flag=True, help="Each call's answer, and how it was parsed.")
@click.option(
    "--why",
    "why",
    type=click.Path(),
    metavar="PATH[:LINE]|call:N[:LINE]",
    help="Why a file was shown, which call wrote a line of the result, or where a line of call N's prompt comes from.",
)
@click.option("--diff", is_flag=True, help="What changed.")
@click.option("--tests", is_flag=True, help="The results of each test run.")
@click.option("--budget", is_flag=True, help="Each call's tokens, compared with its window.")
@click.option("--time", is_flag=True, help="When the whole run did what, from Enter on.")
@click.option("--decisions", is_flag=True, help="Every candidate: included or not, and why.")
@click.option("--full", is_flag=True, help="With --tests: their whole output.")
@options.json_option
@options.exact_option
def command(where: str, repo: Path, as_json: bool, **flags: Any) -> int:
    """Print what the flags, those of `WantedSections`, ask for about the place that `where` names."""
    workspace = wiring.workspace_of(repo)
    wiring.require_record(workspace)
    wanted = WantedSections(**flags)
    run, place = split_place(where)
    with read_record(workspace.repo) as conn:
        trace = read_trace(conn, find_task(conn, run))
        sections = chosen_sections(conn, workspace, trace, choose(trace, place), wanted)
    if as_json:
        output.answer_json(
            {"task_id": trace.task_id, **{part.key: part.as_object(part.data) for part in sections}}
        )
        return 0
    if [part.key for part in sections] == ["diff"] and is_patch(sections[0].data):
        output.hand_on(sections[0].data[0].diff)
        return 0
    with paged() as console:
        for number, part in enumerate(sections):
            if number:
                console.print()
            console.print(part.show(), highlight=False)
    return 0
