"""A recorded run, or a part of it, at a glance: what it was, what came out, pass by pass or call by call."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from clean_room_agent.artifacts.event_kinds import EventKind
from clean_room_agent.artifacts.ids import short_id
from clean_room_agent.db.raw.attempts import ValidationRow
from clean_room_agent.git.generated import Generated, generated_in
from clean_room_agent.report.budget import CallLine, call_line, fullest
from clean_room_agent.report.causes import Ending, ending_lines
from clean_room_agent.report.runs import lone_command, short_names, unwrapped
from clean_room_agent.report.trace import (
    Chosen,
    PassTrace,
    RunTrace,
    cached_share,
    seconds_between,
    tokens_of,
)
from clean_room_agent.report.validation import counts

COLOURS = {"complete": "green", "partial": "yellow", "failed": "red"}
MAX_PATHS = 5

WORDS: Mapping[str, str] = {EventKind.RESTORED_SKIPPED: "tests as before the run, not run once more"}
UNTOLD = frozenset(
    {
        EventKind.NOTE,
        EventKind.RESUMED_WITH,
        EventKind.DESCRIBED_BY,
        EventKind.CONTEXT_OF,
        EventKind.NOT_CHOSEN,
    }
)
"""Kinds of events that are not shown: they were said, stand elsewhere, or are too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassLine:
    """One pass of a run."""

    place: str
    pass_type: str
    pass_id: str
    success: bool | None
    """None while it has not ended."""
    detail: str
    calls: int
    tokens: int
    fullest: tuple[int, int]
    """(tokens, window) of its fullest prompt; (0, 0) where there was none."""
    seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """A run and its passes; what a pass that stands alone does not have is empty."""

    task_id: str
    command: str
    status: str
    reason: str = ""
    task: str = ""
    began: str = ""
    seconds: float | None = None
    base_commit: str = ""
    snapshot_commit: str = ""
    uncommitted: tuple[str, ...] = ()
    generated: tuple[Generated, ...] = ()
    """Folders that the snapshot leaves out, as tools made them."""
    branch: str = ""
    result_commit: str = ""
    parts: tuple[int, int] = (0, 0)
    """(done, all)."""
    steps: tuple[int, int] = (0, 0)
    tests_before: str = ""
    tests_after: str = ""
    passes: tuple[PassLine, ...]
    calls: int
    tokens: int
    cached: float | None = None
    """Of the prompts' tokens, the share that the server had in its prefix cache; None where it does not tell."""
    ending: Ending = field(default_factory=Ending)
    """Why it is not complete, by what its calls and attempts came to."""
    notes: tuple[tuple[str, str], ...] = ()
    """(kind, detail) of what happened beside the passes, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassView:
    """One pass with its calls."""

    line: PassLine
    model: str
    calls: tuple[CallLine, ...]
    included: tuple[str, ...]
    """What assembly let into the context, in order."""
    attempts: tuple[str, ...]
    """What became of its scaffold, then of itself."""
    tests: tuple[str, ...]
    followed: tuple[str, ...]
    """Refinements, why it was not chosen, and recovery decisions, that stand under the pass."""


def run_view(trace: RunTrace, ending: Ending) -> RunView:
    """The run at a glance, with what is known of its `ending`; for a pass that stands alone, what can be said of it."""
    passes = tuple(pass_line(entry) for entry in trace.passes)
    calls = [call for entry in trace.passes for call in entry.calls]
    own = {kind: row for row in trace.tests for kind in [row.kind] if row.task_id == trace.task_id}
    run = trace.run
    if run is None:
        return _alone(trace, passes)
    account = json.loads(run.snapshot) if run.snapshot else {}
    return RunView(
        task_id=run.task_id,
        command=run.command,
        status=run.status.value,
        reason=run.reason,
        task=run.task_description,
        began=run.timestamp,
        seconds=seconds_between(run.timestamp, run.completed_at),
        base_commit=run.base_commit,
        snapshot_commit=run.snapshot_commit,
        uncommitted=tuple(sorted({*account.get("tracked", ()), *account.get("untracked", ())})),
        generated=generated_in(run.snapshot),
        branch=run.branch,
        result_commit=run.result_commit,
        parts=(run.parts_completed, run.total_parts),
        steps=(run.steps_completed, run.total_steps),
        tests_before=_tests(own.get("baseline")),
        tests_after=_tests(own.get("final")),
        passes=passes,
        calls=len(calls),
        tokens=tokens_of(calls),
        cached=cached_share(calls),
        ending=ending,
        notes=tuple((event.kind, event.detail) for event in trace.events),
    )


def pass_line(entry: PassTrace) -> PassLine:
    """The pass in one line."""
    return PassLine(
        place=entry.place,
        pass_type=entry.order.pass_type.value if entry.order else entry.row.mode,
        pass_id=entry.pass_id,
        success=entry.row.success,
        detail=entry.row.detail,
        calls=len(entry.calls),
        tokens=tokens_of(entry.calls),
        fullest=fullest(entry.calls, entry.row.context_window),
        seconds=seconds_between(entry.row.timestamp, entry.row.completed_at),
    )


def pass_views(chosen: Chosen) -> tuple[PassView, ...]:
    """The chosen passes, each with its calls."""
    return tuple(
        PassView(
            line=pass_line(entry),
            model=entry.row.execute_model,
            calls=tuple(call_line(call, entry) for call in entry.calls),
            included=(f"what {entry.context_of} was shown",)
            if entry.context_of
            else tuple(
                f"{row.path}{f' :: {row.symbol}' if row.symbol else ''} ({row.detail.replace('_', ' ')})"
                for row in entry.decisions
                if row.stage == "assembly" and row.included
            ),
            attempts=(
                *((f"scaffold: {entry.scaffold}",) if entry.scaffold else ()),
                *(
                    f"attempt {row.attempt}: {row.outcome.value.replace('_', ' ')}"
                    f"{f', commit {row.commit_hash[:10]}' if row.commit_hash else ''}"
                    for row in entry.attempts
                ),
            ),
            tests=tuple(_tests(row) for row in entry.tests),
            followed=(
                *(f"refined: {', '.join(row.added) or 'nothing came in'}" for row in entry.refinements),
                *((f"not chosen: {entry.not_chosen}",) if entry.not_chosen else ()),
                *(f"then {row.action}: {row.rule}" for row in entry.recoveries),
            ),
        )
        for entry in chosen.passes
    )


def _alone(trace: RunTrace, passes: tuple[PassLine, ...]) -> RunView:
    """A task without a run: one pass (a retrieval), or calls that no pass claims."""
    calls = tuple(call for entry in trace.passes for call in entry.calls)
    if not trace.passes:
        return RunView(
            task_id=trace.task_id, command="", status="no pass is recorded", passes=(), calls=0, tokens=0
        )
    row = trace.passes[0].row
    ended = "complete" if row.success else "failed"
    return RunView(
        task_id=trace.task_id,
        command=lone_command(row.mode),
        status="running" if row.success is None else ended,
        reason=row.detail,
        began=row.timestamp,
        seconds=seconds_between(row.timestamp, row.completed_at),
        passes=passes,
        calls=len(calls),
        tokens=tokens_of(calls),
    )


def render_run(view: RunView, short: Callable[[str], str]) -> Group:
    """The run for a person, and how to look deeper; `short` makes an address within the run into one to type."""
    run = short_id(view.task_id)
    head = Text.assemble(f"{run}  {view.command}  ", (view.status, COLOURS.get(view.status, "yellow")))
    if view.reason:
        head.append(f": {view.reason}")
    parts: list[RenderableType] = [
        head,
        *ending_lines(view.ending),
        Text(""),
        *(Text(f"  {line}".rstrip()) for line in unwrapped(view.task)),
    ]
    if view.task:
        parts.append(Text(""))
    for name, value in _facts(view):
        parts.append(Text.assemble((f"  {name:<9}", "dim"), value))
    parts += [Text(""), _pass_table(view.passes)]
    parts += [Text(f"  {note}", style="dim") for note in _noted(view.notes)]
    parts += [Text(""), *_hints(_deeper(view, short))]
    return Group(*parts)


def _noted(notes: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Each note once; what is wrong with a plan is not said again at its end."""
    told = [(WORDS.get(kind, kind.replace("_", " ")), detail) for kind, detail in notes if kind not in UNTOLD]
    refused = {detail for _, detail in told}
    return tuple(
        dict.fromkeys(f"{kind}: {detail}" for kind, detail in told if f"refused: {detail}" not in refused)
    )


def render_passes(views: tuple[PassView, ...], short: Callable[[str], str]) -> Group:
    """Passes with their calls, for a person."""
    parts: list[RenderableType] = []
    for view in views:
        line = view.line
        parts.append(
            Text.assemble(_mark(line.success), (line.place or line.pass_type, "bold"), f"  {line.detail}")
        )
        parts.append(Text(f"  {line.pass_type} by {view.model or 'no model'}, {_cost(line)}", style="dim"))
        parts += [Text(f"  shown: {text}") for text in view.included]
        parts += [Text(f"  {text}") for text in (*view.attempts, *view.tests, *view.followed) if text]
        if view.calls:
            parts.append(_call_table(view.calls))
        parts.append(Text(""))
    place = views[0].line.place if len(views) == 1 else ""
    parts += _hints(
        [
            (f"{short(place)} --prompt", "what the model read; --response what it answered"),
            (f"{short(place)} --decisions", "what was let in and kept out, and why"),
        ]
    )
    return Group(*parts)


def _facts(view: RunView) -> list[tuple[str, str]]:
    took = "" if view.seconds is None else f", took {duration(view.seconds)}"
    facts = [("began", f"{view.began[:19].replace('T', ' ')} UTC{took}")] if view.began else []
    if view.snapshot_commit:
        extra = f"with {len(view.uncommitted)} uncommitted: {_paths(view.uncommitted)}"
        facts.append(
            (
                "snapshot",
                f"{view.snapshot_commit[:10]}, {extra if view.uncommitted else 'nothing uncommitted'}",
            )
        )
    if view.generated:
        facts.append(
            ("left out", f"made by tools: {_paths(tuple(folder.path for folder in view.generated))}")
        )
    if view.branch:
        facts.append(("branch", f"{view.branch} at {view.result_commit[:10]}"))
    if view.parts[1]:
        if view.command == "plan":
            facts.append(("planned", f"{_counted(view.parts[1], 'part')}, {_counted(view.steps[1], 'step')}"))
        else:
            done = f"{view.parts[0]} of {view.parts[1]} parts, {view.steps[0]} of {view.steps[1]} steps"
            facts.append(("done", done))
    if view.tests_before:
        facts.append(("tests", f"{view.tests_before} -> {view.tests_after or 'not run'}"))
    cached = "" if view.cached is None else f", {view.cached:.0%} of the prompts' in the server's cache"
    facts.append(("cost", f"{view.calls} calls, {view.tokens:,} tokens{cached}"))
    return facts


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _deeper(view: RunView, short: Callable[[str], str]) -> list[tuple[str, str]]:
    place = next((line.place for line in reversed(view.passes) if "/" in line.place), "")
    rows = [(short(place), "one pass: context, calls, tests")] if place else []
    rows += [
        (f"{short('')} --why PATH[:LINE]", "why it was shown, or who wrote it"),
        (f"{short('')} --decisions", "every candidate: in or out, and why"),
    ]
    if view.calls:
        rows.append((f"{short(place)} --prompt", "what the model read; --response"))
        rows.append((f"{short('')} --budget", "what filled each window"))
    if view.snapshot_commit and view.command != "plan":
        rows.append((f"{short('')} --diff", "what changed (--tests: test runs)"))
    return rows


def _hints(rows: Sequence[tuple[str, str]]) -> list[Text]:
    """Commands, and below one another what each shows."""
    width = max(len(command) for command, _ in rows)
    return [Text.assemble("  ", (f"{command:<{width}}", "bold"), f"  {what}") for command, what in rows]


def _pass_table(lines: tuple[PassLine, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("  pass", overflow="fold")
    for name in ("calls", "tokens", "s"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("outcome", overflow="fold")
    for line in lines:
        seconds = "" if line.seconds is None else f"{line.seconds:.1f}"
        detail = short_names(line.detail) or ("" if line.success is not None else "under way, or broken off")
        title = Text.assemble(_mark(line.success), line.place or line.pass_type)
        table.add_row(title, str(line.calls), f"{line.tokens:,}", seconds, Text(detail))
    return table


def _call_table(calls: tuple[CallLine, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("  call", no_wrap=True)
    table.add_column("prompt", overflow="fold")
    for name in ("tokens", "answer", "s"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("how it ended", overflow="fold")
    for call in calls:
        tokens = call.actual if call.actual is not None else call.estimated
        name = f"{call.call_type} {call.item}" if call.item and call.item != call.model else call.call_type
        answer = "" if call.answer is None else f"{call.answer:,}"
        table.add_row(
            f"  {call.call_id}", Text(name), f"{tokens:,}", answer, f"{call.seconds:.1f}", Text(call.ended)
        )
    return table


def _mark(success: bool | None) -> tuple[str, str]:
    return ("· ", "yellow") if success is None else ("✓ ", "green") if success else ("✗ ", "red")


def _cost(line: PassLine) -> str:
    used, window = line.fullest
    words = [f"{line.calls} call{'s' if line.calls != 1 else ''}", f"{line.tokens:,} tokens"]
    if window:
        words.append(f"fullest prompt {used:,} of {window:,}")
    if line.seconds is not None:
        words.append(duration(line.seconds))
    return ", ".join(words)


def _tests(row: ValidationRow | None) -> str:
    return "" if row is None else counts(row)


def _paths(paths: tuple[str, ...]) -> str:
    more = len(paths) - MAX_PATHS
    return ", ".join(paths[:MAX_PATHS]) + (f" and {more} more" if more > 0 else "")


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.1f} min"
