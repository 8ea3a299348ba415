"""A run, or passes of it, at a glance: as `--json` answers it, and for a terminal, with commands to look further."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from clean_room_agent.artifacts.model_calls import CallSummary
from clean_room_agent.artifacts.names import counted, item_name, listed, model_name, short_id
from clean_room_agent.artifacts.outcomes import EventKind
from clean_room_agent.db.raw.passes import ValidationRow
from clean_room_agent.db.raw.runs import recorded_evidence
from clean_room_agent.git.generated import generated_in
from clean_room_agent.json_values import to_shown
from clean_room_agent.report.run_list import COLOURS, plain_table, short_names
from clean_room_agent.report.summary import (
    Ending,
    duration,
    ending_lines,
    goal_lines,
    shown_by,
    touched_lines,
    touched_on_record,
)
from clean_room_agent.report.time_lanes import working_seconds
from clean_room_agent.report.trace import PassTrace, RunTrace, cached_share, ended_words, tokens_of
from clean_room_agent.report.validation import counts, counts_of

MAX_PATHS = 5
MAX_TASK = 8_000
"""Characters of a task that are printed."""
UNFINISHED = "in progress, or interrupted"
KEPT_AS_DATA: Mapping[str, Callable[[Any], str] | None] = {
    EventKind.FLAGS: lambda flags: ", ".join(f"{key} = {value}" for key, value in sorted(flags.items())),
    EventKind.PLAN_GIVEN: lambda plan: counted(len(plan["steps"]), "step"),
    EventKind.META_PLAN_GIVEN: lambda plan: counted(len(plan["parts"]), "part"),
    EventKind.RESUMED_WITH: None,
    EventKind.EVIDENCE_GIVEN: None,
    EventKind.EVIDENCE: None,
    EventKind.DESCRIBED_BY: None,
    EventKind.GOAL_TESTS: None,
    EventKind.TESTS_TOUCHED: None,
}
"""What people are shown of events whose detail is JSON; None if it is shown elsewhere, or of no interest to them."""
UNTOLD = {EventKind.NOTE, EventKind.RESTORED_SKIPPED, EventKind.CONTEXT_OF, EventKind.NOT_CHOSEN}
"""Kinds of events that are not shown: they were printed before, or are shown elsewhere."""


def outline(trace: RunTrace) -> RunTrace:
    """The run without the texts that are not shown at a glance, so that nobody is told of secrets in them."""
    passes = tuple(
        replace(
            entry,
            row=replace(entry.row, final_diff=None, final_plan=None, plan_artifact=None),
            decisions=tuple(
                replace(row, reason="") for row in entry.decisions if row.stage == "assembly" and row.included
            ),
            plan_decisions=(),
            attempts=tuple(replace(row, raw_response="", diff="", edit_report=()) for row in entry.attempts),
            tests=tuple(map(_without_output, entry.tests)),
            refinements=tuple(replace(row, request="", evidence="") for row in entry.refinements),
            recoveries=tuple(replace(row, state="", detail="") for row in entry.recoveries),
        )
        for entry in trace.passes
    )
    return replace(trace, passes=passes, tests=tuple(map(_without_output, trace.tests)))


def _without_output(row: ValidationRow) -> ValidationRow:
    failing = tuple(replace(test, message="") for test in row.failing_tests)
    return replace(row, test_output="", lint_output=None, type_check_output=None, failing_tests=failing)


def notes(trace: RunTrace, pass_id: str | None = None) -> tuple[tuple[str, str], ...]:
    """(kind, words) of the run's events, or of a pass's, each once; a plan's faults are not repeated at its end."""
    told = [
        (event.kind.replace("_", " "), words)
        for event in trace.events
        if event.kind not in UNTOLD
        and pass_id in {None, event.task_id}
        and (pass_id or event.kind != EventKind.HINT_SHOWN)
        and (words := event_words(event.kind, event.detail))
    ]
    refused = {words for _, words in told}
    return tuple(dict.fromkeys(one for one in told if f"refused: {one[1]}" not in refused))


def event_words(kind: str, detail: str) -> str:
    """The detail of an event as people are shown it; "" if they are not."""
    if kind not in KEPT_AS_DATA:
        return detail
    words = KEPT_AS_DATA[kind]
    return "" if words is None else words(json.loads(detail))


def run_object(trace: RunTrace, ending: Ending) -> dict[str, Any]:
    """The run as `--json` answers it; of a single pass without a run, fields that do not apply are empty."""
    run = trace.run
    calls = [call for entry in trace.passes for call in entry.calls]
    snapshot = json.loads(run.snapshot) if run and run.snapshot else {}
    return {
        "task_id": trace.task_id,
        "command": trace.command,
        "status": trace.status,
        "reason": reason_of(trace),
        "task": run.task_description if run else "",
        "began": began_of(trace),
        "seconds": working_seconds(trace),
        "base_commit": run.base_commit if run else "",
        "snapshot_commit": run.snapshot_commit if run else "",
        "uncommitted": sorted({*snapshot.get("tracked", ()), *snapshot.get("untracked", ())}),
        "generated": to_shown(generated_in(run.snapshot)) if run else [],
        "branch": run.branch if run else "",
        "result_commit": run.result_commit if run else "",
        "parts": (run.parts_completed, run.total_parts) if run else (0, 0),
        "steps": (run.steps_completed, run.total_steps) if run else (0, 0),
        "tests_before": counts_of(trace, "baseline"),
        "tests_after": counts_of(trace, "final"),
        "calls": len(calls),
        "tokens": tokens_of(calls),
        "cached": cached_share(calls),
        "passes": [pass_object(entry) for entry in trace.passes],
        "ending": to_shown(ending),
        "evidence": to_shown(recorded_evidence(trace.events) or ()),
        "touched": to_shown(touched_on_record(trace.events)),
        "notes": [(event.kind, event.detail) for event in trace.events],
    }


def pass_object(entry: PassTrace) -> dict[str, Any]:
    """One pass as `--json` answers it."""
    return {
        "place": entry.place,
        "pass_type": entry.kind,
        "pass_id": entry.pass_id,
        "success": entry.row.success,
        "detail": entry.row.detail,
        "calls": len(entry.calls),
        "tokens": tokens_of(entry.calls),
        "fullest": entry.fullest,
        "seconds": entry.seconds,
    }


def passes_object(trace: RunTrace) -> list[dict[str, Any]]:
    """The passes with what they were shown, tried and asked, as `--json` answers them."""
    return [
        {
            "line": pass_object(entry),
            "model": entry.row.execute_model,
            "calls": [call_object(call, entry.place, entry.window_of(call)) for call in entry.calls],
            "included": included(entry),
            "attempts": attempt_lines(entry),
            "tests": [counts(row) for row in entry.tests],
            "followed": followed(entry),
        }
        for entry in trace.passes
    ]


def call_object(call: CallSummary, place: str, window: int) -> dict[str, Any]:
    """One call and what it cost, as `--json` answers it."""
    return {
        "call_id": call.id,
        "place": place,
        "call_type": call.site.call_type,
        "item": call.site.item,
        "model": call.model.tag,
        "estimated": call.cost.estimated_tokens,
        "actual": call.cost.prompt_tokens,
        "answer": call.cost.completion_tokens,
        "answer_limit": call.limits.answer,
        "window": window,
        "seconds": call.cost.latency_ms / 1000,
        "ended": ended_words(call),
    }


def reason_of(trace: RunTrace) -> str:
    """Why it ended so; "" if that says itself."""
    if trace.run is not None:
        return "" if trace.run.reason == trace.run.status.value else trace.run.reason
    return trace.passes[0].row.detail if trace.passes else ""


def began_of(trace: RunTrace) -> str:
    """When it began; "" if that is not recorded."""
    if trace.run is not None:
        return trace.run.timestamp
    return trace.passes[0].row.timestamp if trace.passes else ""


def included(entry: PassTrace) -> list[str]:
    """What the pass's context held, in order."""
    if entry.context_of:
        return [f"what {entry.context_of} was shown"]
    return [
        f"{item_name(row.subject.path, row.subject.symbol)} ({row.detail.replace('_', ' ')})"
        for row in entry.decisions
        if row.stage == "assembly" and row.included
    ]


def attempt_lines(entry: PassTrace) -> list[str]:
    """The outcome of each attempt."""
    lines = []
    for row in entry.attempts:
        line = f"attempt {row.attempt}: {row.outcome.value.replace('_', ' ')}"
        line += f", commit {row.commit_hash[:10]}" if row.commit_hash else ""
        # Of one among several, the pass's own line says nothing.
        line += f": {row.error.partition(chr(10))[0]}" if row.error and len(entry.attempts) > 1 else ""
        lines.append(line)
    return lines


def followed(entry: PassTrace) -> list[str]:
    """Refinements, why it was not chosen, and recovery decisions recorded for the pass."""
    return [
        *(f"refined: {', '.join(row.added) or 'nothing came in'}" for row in entry.refinements),
        *((f"not chosen: {entry.not_chosen}",) if entry.not_chosen else ()),
        *(f"then {row.action}: {row.rule}" for row in entry.recoveries),
    ]


def render_run(trace: RunTrace, ending: Ending, short: Callable[[str], str], there: str = "") -> Group:
    """The run for a person, and how to look deeper; `short` makes an address within the run into the command that shows it,
    `there` is the flag that other commands need.
    """
    head = Text.assemble(
        f"{short_id(trace.task_id)}  {trace.command}  ", (trace.status, COLOURS.get(trace.status, "yellow"))
    )
    shown = shown_by(recorded_evidence(trace.events) or ()) if trace.status == "complete" else ""
    if reason_of(trace) or shown:
        head.append(f": {reason_of(trace) or shown}")
    parts: list[RenderableType] = [head, *ending_lines(ending, there), Text("")]
    if trace.run is not None and trace.run.task_description:
        task = trace.run.task_description
        if len(task) > MAX_TASK:
            task = f"{task[:MAX_TASK]} …\n\n({len(task) - MAX_TASK:,} more characters; --json has them)"
        parts += [*(Text(f"  {line}".rstrip()) for line in task.splitlines()), Text("")]
    parts += [Text.assemble((f"  {name:<9}", "dim"), value) for name, value in _run_facts(trace)]
    parts += [Text(""), _pass_table(trace)]
    parts += touched_lines(touched_on_record(trace.events))
    parts += [Text(f"  {kind}: {words}", style="dim") for kind, words in notes(trace)]
    parts += [Text(""), *_command_lines(_deeper_commands(trace, short))]
    return Group(*parts)


def render_passes(trace: RunTrace, short: Callable[[str], str]) -> Group:
    """Passes with their calls, for a person."""
    parts: list[RenderableType] = []
    for entry in trace.passes:
        parts.append(
            Text.assemble(
                _success_mark(entry.row.success),
                " ",
                (entry.place or entry.kind, "bold"),
                f"  {entry.row.detail}",
            )
        )
        by = f"  {entry.kind} by {model_name(entry.row.execute_model) or 'no model'}, {_pass_cost(entry)}"
        parts.append(Text(by, style="dim"))
        parts += [Text(f"  shown: {text}") for text in included(entry)]
        lines = (*attempt_lines(entry), *map(counts, entry.tests), *followed(entry))
        parts += [Text(f"  {line}") for line in lines]
        if entry.calls:
            parts.append(_call_table(entry))
        parts.append(Text(""))
    place = trace.passes[0].place if len(trace.passes) == 1 else ""
    rows = (
        (f"{short(place)} --prompt", "what the model read; --response what it answered"),
        (f"{short(place)} --decisions", "what was included and left out, and why"),
    )
    return Group(*parts, *_command_lines(rows))


def _run_facts(trace: RunTrace) -> list[tuple[str, str]]:
    """(name, value) of what there is to say of the run as a whole."""
    view = run_object(trace, Ending())
    took = "" if view["seconds"] is None else f", took {duration(view['seconds'])}"
    facts = [("began", f"{view['began'][:19].replace('T', ' ')} UTC{took}")] if view["began"] else []
    uncommitted = view["uncommitted"]
    if view["snapshot_commit"]:
        extra = f"with {len(uncommitted)} uncommitted: {listed(uncommitted, MAX_PATHS)}"
        facts.append(
            ("snapshot", f"{view['snapshot_commit'][:10]}, {extra if uncommitted else 'nothing uncommitted'}")
        )
    if view["generated"]:
        paths = listed((folder["path"] for folder in view["generated"]), MAX_PATHS)
        facts.append(("left out", f"made by tools: {paths}"))
    if view["branch"]:
        facts.append(("branch", f"{view['branch']} at {view['result_commit'][:10]}"))
    (parts_done, parts), (steps_done, steps) = view["parts"], view["steps"]
    if parts and trace.command == "plan":
        facts.append(("planned", f"{counted(parts, 'part')}, {counted(steps, 'step')}"))
    elif parts and trace.was_planned:
        done = f"{parts_done} of {counted(parts, 'part')}, {steps_done} of {counted(steps, 'step')}"
        facts.append(("done", done))
    facts += [("goal", line) for line in goal_lines(recorded_evidence(trace.events) or ())]
    if view["tests_before"]:
        facts.append(("tests", f"{view['tests_before']} -> {view['tests_after'] or 'not run'}"))
    cached = "" if view["cached"] is None else f", {view['cached']:.0%} of the prompts' in the server's cache"
    facts.append(("cost", f"{counted(view['calls'], 'call')}, {counted(view['tokens'], 'token')}{cached}"))
    return facts


def _deeper_commands(trace: RunTrace, short: Callable[[str], str]) -> list[tuple[str, str]]:
    place = next((entry.place for entry in reversed(trace.passes) if "/" in entry.place), "")
    rows = [(short(place), "one pass: context, calls, tests")] if place else []
    rows += [
        (f"{short('')} --why PATH[:LINE]", "why it was shown, or who wrote it"),
        (f"{short('')} --decisions", "every candidate: in or out, and why"),
    ]
    if trace.calls:
        rows.append((f"{short(place)} --prompt", "what the model read; --response"))
        rows.append((f"{short('')} --budget", "what filled each window"))
    if trace.run is not None and trace.run.snapshot_commit and trace.command != "plan":
        rows.append((f"{short('')} --diff", "what changed (--tests: test runs)"))
    return rows


def _command_lines(rows: Sequence[tuple[str, str]]) -> list[Text]:
    """Commands, each with what it shows, one below the other."""
    width = max(len(command) for command, _ in rows)
    return [Text.assemble("  ", (f"{command:<{width}}", "bold"), f"  {what}") for command, what in rows]


def _pass_table(trace: RunTrace) -> Table:
    figures = ("calls", "tokens", "s")
    table = plain_table("  pass", *figures, "outcome", right=figures, folded=("  pass", "outcome"))
    for entry in trace.passes:
        seconds = "" if entry.seconds is None else f"{entry.seconds:.1f}"
        detail = short_names(entry.row.detail) or (UNFINISHED if entry.row.success is None else "")
        title = Table.grid(padding=(0, 1, 0, 0))  # a long name goes on below itself, not below the mark
        title.add_column(no_wrap=True)
        title.add_column(overflow="fold")
        title.add_row(Text(*_success_mark(entry.row.success)), Text(entry.place or entry.kind))
        table.add_row(title, str(len(entry.calls)), f"{tokens_of(entry.calls):,}", seconds, Text(detail))
    return table


def _call_table(entry: PassTrace) -> Table:
    figures = ("tokens", "answer", "s")
    table = plain_table("  call", *figures, "how it ended", right=figures, folded=("  call", "how it ended"))
    for call in entry.calls:
        about = f" {call.site.item}" if call.site.item not in {"", call.model.tag} else ""
        answer = "" if call.cost.completion_tokens is None else f"{call.cost.completion_tokens:,}"
        table.add_row(
            Text(f"  {call.id}  {call.site.call_type}{about}"),
            f"{call.cost.read_tokens:,}",
            answer,
            f"{call.cost.latency_ms / 1000:.1f}",
            Text(ended_words(call)),
        )
    return table


def _success_mark(success: bool | None) -> tuple[str, str]:
    return ("·", "yellow") if success is None else ("✓", "green") if success else ("✗", "red")


def _pass_cost(entry: PassTrace) -> str:
    used, window = entry.fullest
    words = [counted(len(entry.calls), "call"), counted(tokens_of(entry.calls), "token")]
    if window:
        words.append(f"fullest prompt {used:,} of {window:,}")
    if entry.seconds is not None:
        words.append(duration(entry.seconds))
    return ", ".join(words)
