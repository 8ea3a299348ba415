"""A run, a pass or its calls at a glance for a terminal, with commands to look further."""

from collections.abc import Callable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from clean_room_agent.artifacts.names import counted, listed, model_name, short_id
from clean_room_agent.artifacts.outcomes import EventKind
from clean_room_agent.report.budget import CallLine
from clean_room_agent.report.run_view import (
    PassLine,
    PassView,
    RunView,
    event_words,
)
from clean_room_agent.report.runs import COLOURS, short_names, unwrapped
from clean_room_agent.report.summary import ending_lines, goal_lines, shown_by, touched_lines

MAX_PATHS = 5
MAX_TASK = 8_000
"""Characters of a task that are printed."""


UNTOLD = frozenset(
    {
        EventKind.NOTE,
        EventKind.RESTORED_SKIPPED,
        EventKind.CONTEXT_OF,
        EventKind.NOT_CHOSEN,
    }
)
"""Kinds of events that are not shown: they were printed before, or are shown elsewhere."""


def render_run(view: RunView, short: Callable[[str], str]) -> Group:
    """The run for a person, and how to look deeper; `short` makes an address within the run into one to type."""
    run = short_id(view.head.task_id)
    head = Text.assemble(
        f"{run}  {view.head.command}  ", (view.head.status, COLOURS.get(view.head.status, "yellow"))
    )
    shown = shown_by(view.evidence) if view.head.status == "complete" else ""
    if view.head.reason or shown:
        head.append(f": {view.head.reason or shown}")
    parts: list[RenderableType] = [
        head,
        *ending_lines(view.ending),
        Text(""),
        *(Text(f"  {line}".rstrip()) for line in unwrapped(_shown_task(view.head.task))),
    ]
    if view.head.task:
        parts.append(Text(""))
    for name, value in _facts(view):
        parts.append(Text.assemble((f"  {name:<9}", "dim"), value))
    parts += [Text(""), _pass_table(view.passes)]
    parts += touched_lines(view.touched)
    parts += [Text(f"  {note}", style="dim") for note in _noted(view.notes)]
    parts += [Text(""), *_hints(_deeper(view, short))]
    return Group(*parts)


def _shown_task(task: str) -> str:
    """The task, or the beginning of a very long one."""
    more = len(task) - MAX_TASK
    return task if more <= 0 else f"{task[:MAX_TASK]} …\n\n({more:,} more characters; --json has them)"


def _noted(notes: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """The notes without duplicates; a plan's faults are not repeated at its end."""
    told = [
        (kind.replace("_", " "), words)
        for kind, detail in notes
        if kind not in UNTOLD and (words := event_words(kind, detail))
    ]
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
        parts.append(
            Text(f"  {line.pass_type} by {model_name(view.model) or 'no model'}, {_cost(line)}", style="dim")
        )
        parts += [Text(f"  shown: {text}") for text in view.included]
        parts += [Text(f"  {text}") for text in (*view.attempts, *view.tests, *view.followed) if text]
        if view.calls:
            parts.append(_call_table(view.calls))
        parts.append(Text(""))
    place = views[0].line.place if len(views) == 1 else ""
    parts += _hints(
        [
            (f"{short(place)} --prompt", "what the model read; --response what it answered"),
            (f"{short(place)} --decisions", "what was included and left out, and why"),
        ]
    )
    return Group(*parts)


def _facts(view: RunView) -> list[tuple[str, str]]:
    took = "" if view.head.seconds is None else f", took {duration(view.head.seconds)}"
    facts = [("began", f"{view.head.began[:19].replace('T', ' ')} UTC{took}")] if view.head.began else []
    if view.commits.snapshot_commit:
        extra = (
            f"with {len(view.commits.uncommitted)} uncommitted: {listed(view.commits.uncommitted, MAX_PATHS)}"
        )
        facts.append(
            (
                "snapshot",
                f"{view.commits.snapshot_commit[:10]}, {extra if view.commits.uncommitted else 'nothing uncommitted'}",
            )
        )
    if view.commits.generated:
        facts.append(
            (
                "left out",
                f"made by tools: {listed((folder.path for folder in view.commits.generated), MAX_PATHS)}",
            )
        )
    if view.commits.branch:
        facts.append(("branch", f"{view.commits.branch} at {view.commits.result_commit[:10]}"))
    if view.outcome.parts[1]:
        if view.head.command == "plan":
            facts.append(
                (
                    "planned",
                    f"{counted(view.outcome.parts[1], 'part')}, {counted(view.outcome.steps[1], 'step')}",
                )
            )
        else:
            done = f"{view.outcome.parts[0]} of {counted(view.outcome.parts[1], 'part')}, {view.outcome.steps[0]} of {counted(view.outcome.steps[1], 'step')}"
            facts.append(("done", done))
    facts += [("goal", line) for line in goal_lines(view.evidence)]
    if view.outcome.tests_before:
        facts.append(("tests", f"{view.outcome.tests_before} -> {view.outcome.tests_after or 'not run'}"))
    cached = (
        "" if view.cost.cached is None else f", {view.cost.cached:.0%} of the prompts' in the server's cache"
    )
    facts.append(
        ("cost", f"{counted(view.cost.calls, 'call')}, {counted(view.cost.tokens, 'token')}{cached}")
    )
    return facts


def _deeper(view: RunView, short: Callable[[str], str]) -> list[tuple[str, str]]:
    place = next((line.place for line in reversed(view.passes) if "/" in line.place), "")
    rows = [(short(place), "one pass: context, calls, tests")] if place else []
    rows += [
        (f"{short('')} --why PATH[:LINE]", "why it was shown, or who wrote it"),
        (f"{short('')} --decisions", "every candidate: in or out, and why"),
    ]
    if view.cost.calls:
        rows.append((f"{short(place)} --prompt", "what the model read; --response"))
        rows.append((f"{short('')} --budget", "what filled each window"))
    if view.commits.snapshot_commit and view.head.command != "plan":
        rows.append((f"{short('')} --diff", "what changed (--tests: test runs)"))
    return rows


def _hints(rows: Sequence[tuple[str, str]]) -> list[Text]:
    """Commands, each with what it shows, one below the other."""
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
        detail = short_names(line.detail) or (
            "" if line.success is not None else "in progress, or interrupted"
        )
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
        name = f"{call.call_type} {call.item}" if call.item and call.item != call.model else call.call_type
        answer = "" if call.tokens.answer is None else f"{call.tokens.answer:,}"
        table.add_row(
            f"  {call.call_id}",
            Text(name),
            f"{call.tokens.used:,}",
            answer,
            f"{call.seconds:.1f}",
            Text(call.ended),
        )
    return table


def _mark(success: bool | None) -> tuple[str, str]:
    return ("· ", "yellow") if success is None else ("✓ ", "green") if success else ("✗ ", "red")


def _cost(line: PassLine) -> str:
    used, window = line.fullest
    words = [counted(line.calls, "call"), f"{counted(line.tokens, 'token')}"]
    if window:
        words.append(f"fullest prompt {used:,} of {window:,}")
    if line.seconds is not None:
        words.append(duration(line.seconds))
    return ", ".join(words)


def duration(seconds: float) -> str:
    """A duration in words for people."""
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.1f} min"
