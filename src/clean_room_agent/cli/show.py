"""`cra show`: look into a run, from the whole of it down to one prompt."""

import contextlib
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import click
from rich.console import RenderableType

from clean_room_agent.artifacts.ids import NEWEST_RUN, short_id
from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.cli import options, output, wiring
from clean_room_agent.cli.gauges import read_gauges
from clean_room_agent.cli.neutral import neutral
from clean_room_agent.cli.paging import paged
from clean_room_agent.cli.prompts import PROMPTS
from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.raw.runs import find_task
from clean_room_agent.db.rows import Connection
from clean_room_agent.errors import GitError, UsageError
from clean_room_agent.git.history import diff
from clean_room_agent.git.repository import open_repository
from clean_room_agent.report.causes import Ending, ending_of
from clean_room_agent.report.decisions import render_verdicts, verdicts
from clean_room_agent.report.inspect import pass_views, render_passes, render_run, run_view
from clean_room_agent.report.texts import (
    AttemptDiff,
    attempt_diffs,
    call_texts,
    render_diffs,
    render_prompts,
    render_responses,
)
from clean_room_agent.report.touched import TestsTouched, render_touched, touched_on_record
from clean_room_agent.report.trace import Chosen, RunTrace, choose, read_trace
from clean_room_agent.report.validation import render_validations, validation_lines
from clean_room_agent.report.why import render_why, why
from clean_room_agent.report.why_line import line_why, prompt_why, render_line_why, render_prompt_why
from clean_room_agent.report.windows import gauge_lines, render_accounts, render_gauges, window_accounts
from clean_room_agent.workspace import Workspace

DataT = TypeVar("DataT")
BY_NAME = {prompt.name: prompt for prompt in PROMPTS}
CALL_LINE = re.compile(r"call:(?P<call>\d+)(?::(?P<line>\d+))?")

UNFINISHED = frozenset({RunStatus.FAILED, RunStatus.PARTIAL, RunStatus.NEEDS_HUMAN})

HELP = """Look into RUN, or into one PLACE of it.

\b
RUN    any beginning of a run's id that no other run has; @ for the newest (also where nothing is given), @~1 for the
       one before
PLACE  meta_plan    the pass that divides the task
       part         all passes of a part
       part/step    a step: its attempts, and what came after
       part/step/2  its second attempt
       call:15      one call of a model

Any other pass goes by the name that `cra show RUN` prints for it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What of a run the flags ask for."""

    prompt: bool
    response: bool
    diff: bool
    tests: bool
    budget: bool
    decisions: bool
    why: str | None
    full: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Section(Generic[DataT]):
    """One thing asked for: its key in `--json`, its data, and how a person sees them."""

    key: str
    data: DataT
    render: Callable[[DataT], RenderableType]

    def show(self) -> RenderableType:
        """The data made safe for a terminal, then rendered."""
        return self.render(neutral(self.data))


@click.command(help=HELP)
@click.argument("where", type=options.RUN_PLACE, metavar="[RUN[/PLACE]]", default=NEWEST_RUN)
@options.repo_option
@click.option("--prompt", is_flag=True, help="What the model read, call by call.")
@click.option("--response", is_flag=True, help="What the model answered, and how it was read.")
@click.option(
    "--why",
    "why_path",
    type=options.RUN_PATH,
    metavar="PATH[:LINE]|call:N[:LINE]",
    help="Why a file was shown, who wrote a line of the result; where a line of call N's prompt comes from.",
)
@click.option("--diff", "show_diff", is_flag=True, help="What was changed.")
@click.option("--tests", is_flag=True, help="What the tests said, run after run.")
@click.option("--budget", "show_budget", is_flag=True, help="Each call's tokens against its window.")
@click.option("--decisions", is_flag=True, help="Every candidate: in or out, and why.")
@click.option("--full", is_flag=True, help="With --tests: all that they printed.")
@options.json_option
@options.exact_option
def command(
    where: str,
    repo: Path,
    prompt: bool,
    response: bool,
    why_path: str | None,
    show_diff: bool,
    tests: bool,
    show_budget: bool,
    decisions: bool,
    full: bool,
    as_json: bool,
) -> int:
    """Print what the flags ask for, of the place that `where` names."""
    workspace = wiring.workspace_of(repo)
    if not workspace.raw.exists():
        raise UsageError("nothing has been recorded here yet", hint="`cra solve` makes the first run")
    wanted = Wanted(
        prompt=prompt,
        response=response,
        diff=show_diff,
        tests=tests,
        budget=show_budget,
        decisions=decisions,
        why=why_path,
        full=full,
    )
    prefix, _, place = where.removeprefix("cra/").partition("/")
    with contextlib.closing(get_connection("raw", repo_path=workspace.repo, read_only=True)) as conn:
        trace = read_trace(conn, find_task(conn, prefix))
        sections = chosen_sections(conn, workspace, trace, choose(trace, place), wanted)
    if as_json:
        output.answer_json({"task_id": trace.task_id, **{part.key: part.data for part in sections}})
        return 0
    if [part.key for part in sections] == ["diff"] and _is_patch(sections[0].data):
        output.hand_on(sections[0].data[0].diff)
        return 0
    with paged() as console:
        for number, part in enumerate(sections):
            if number:
                console.print()
            console.print(part.show(), highlight=False)
    return 0


def _is_patch(diffs: tuple[AttemptDiff, ...]) -> bool:
    """Whether all that is shown is a whole run's change, and shown to a program: then it can be applied."""
    return not sys.stdout.isatty() and len(diffs) == 1 and not diffs[0].place


def chosen_sections(
    conn: Connection, workspace: Workspace, trace: RunTrace, chosen: Chosen, wanted: Wanted
) -> list[Section[Any]]:
    """What the flags ask for, in a fixed order; without any, the place at a glance."""
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
    return sections or _glance(conn, trace, chosen)


def _windows(conn: Connection, trace: RunTrace, chosen: Chosen) -> list[Section[Any]]:
    """The account of each call's window, and what it was measured with."""
    gauges = read_gauges(conn, trace.task_id) or {}
    accounts = window_accounts(conn, trace, chosen, BY_NAME, gauges)
    return [
        Section(key="budget", data=accounts, render=render_accounts),
        Section(key="gauges", data=gauge_lines(gauges), render=render_gauges),
    ]


def _why(conn: Connection, workspace: Workspace, trace: RunTrace, chosen: Chosen, asked: str) -> Section[Any]:
    """Why a file, a line of the result, or a line of a prompt is as it is."""
    address = _address(trace)
    of_call = CALL_LINE.fullmatch(asked)
    if of_call is None:
        path, line = split_line(workspace, asked)
        data = why(conn, trace, chosen.passes, path, line)
        return Section(key="why", data=data, render=lambda found: render_why(found, address))
    call_id = int(of_call["call"])
    if of_call["line"] is None:
        whole = prompt_why(conn, trace, call_id, BY_NAME)
        return Section(key="why", data=whole, render=render_prompt_why)
    one = line_why(conn, trace, call_id, int(of_call["line"]), BY_NAME)
    return Section(key="why", data=one, render=lambda found: render_line_why(found, address))


def split_line(workspace: Workspace, text: str) -> tuple[str, int | None]:
    """The path as the record writes it (relative to the repository), and the 1-based line where one is named."""
    path, colon, number = text.rpartition(":")
    line = int(number) if colon and number.isdecimal() and int(number) > 0 else None
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


def ending_on_record(conn: Connection, trace: RunTrace) -> Ending:
    """Why the run is unfinished; empty while it goes on, and where it is complete."""
    if trace.run is None or trace.run.status not in UNFINISHED:
        return Ending()
    return ending_of(conn, trace.task_id, reason=trace.run.reason)


def _address(trace: RunTrace) -> Callable[[str], str]:
    """From a place to the command that shows it."""
    run = short_id(trace.task_id)
    return lambda place: f"cra show {run}/{place}" if place else f"cra show {run}"


def result_diffs(workspace: Workspace, trace: RunTrace, chosen: Chosen) -> tuple[AttemptDiff, ...]:
    """The whole run's change as git has it; of a place, and where the commits are gone, attempt by attempt."""
    run = trace.run
    if chosen.place or run is None or not run.result_commit:
        return attempt_diffs(chosen, accepted_only=not chosen.place)
    try:
        text = diff(open_repository(workspace.repo), run.snapshot_commit, run.result_commit)
    except GitError:
        return attempt_diffs(chosen, accepted_only=True)
    return (AttemptDiff(place="", attempt=0, outcome=run.status.value, stands=True, diff=text),)
