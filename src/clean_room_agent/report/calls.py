"""The calls of a task, one by one: what a model read and answered, what filled its window, and the resulting diffs."""

from collections import Counter
from typing import Any

from msgspec import Struct
from rich.console import Group, RenderableType
from rich.syntax import Syntax
from rich.text import Text

from clean_room_agent.artifacts.model_calls import CallSummary, ModelCall
from clean_room_agent.artifacts.names import counted, model_name
from clean_room_agent.artifacts.prompt_sources import PromptSource
from clean_room_agent.db.raw.calls import get_call
from clean_room_agent.db.rows import Connection
from clean_room_agent.errors import GitError
from clean_room_agent.git.history import diff
from clean_room_agent.git.repository import open_repository
from clean_room_agent.report.prompt_lines import BEFORE_SPANS, CODE, prompt_lines
from clean_room_agent.report.run_view import call_object
from clean_room_agent.report.trace import RunTrace
from clean_room_agent.workspace import Workspace


class CallTexts(Struct, frozen=True, kw_only=True):
    """One call with its texts, exactly as they were sent and received."""

    place: str
    head: CallSummary
    call: ModelCall


class AttemptDiff(Struct, frozen=True, kw_only=True):
    """What one attempt changed."""

    place: str
    attempt: int
    outcome: str
    stands: bool
    """Whether it is part of the result."""
    diff: str


def call_texts(conn: Connection, trace: RunTrace) -> tuple[CallTexts, ...]:
    """The texts of the calls, in order."""
    places = {call.id: entry.place for entry in trace.passes for call in entry.calls}
    found = ((head, get_call(conn, head.id)) for head in trace.calls)
    return tuple(
        CallTexts(place=places[head.id], head=head, call=call) for head, call in found if call is not None
    )


def texts_object(texts: tuple[CallTexts, ...]) -> list[dict[str, Any]]:
    """The texts as `--json` answers them."""
    return [
        {
            "call_id": text.head.id,
            "place": text.place,
            "call_type": text.head.site.call_type,
            "item": text.head.site.item,
            "model": text.head.model.tag,
            "system_prompt": text.call.request.system_prompt,
            "prompt": text.call.request.prompt,
            "response": text.call.answer.response,
            "thinking": text.call.answer.thinking,
            "finish": text.call.ending.finish,
            "reading": text.head.read.reading if text.head.read else "",
            "fault": text.head.read.fault if text.head.read else "",
            "error": text.call.ending.error,
        }
        for text in texts
    ]


def render_prompts(texts: tuple[CallTexts, ...]) -> Group:
    """System prompt and prompt of each call."""
    parts: list[Text] = []
    for text in texts:
        request = text.call.request
        parts += [_head(text), Text("--- system", style="dim"), _unwrapped_text(request.system_prompt)]
        parts += [Text("--- prompt", style="dim"), _unwrapped_text(request.prompt), Text("")]
    return Group(*(parts or [Text("no call is recorded here")]))


def render_responses(texts: tuple[CallTexts, ...]) -> Group:
    """The answer of each call, why it ended and how it was read."""
    parts: list[Text] = []
    for text in texts:
        parts.append(_head(text))
        answer, ending, read = text.call.answer, text.call.ending, text.head.read
        if answer.thinking:
            parts += [Text("--- thinking", style="dim"), _unwrapped_text(answer.thinking)]
        reading = ": ".join(filter(None, (read.reading, read.fault))) if read else ""
        said = ", ".join(filter(None, (ending.finish, reading, ending.error)))
        parts += [Text(f"--- answer ({said})", style="dim"), _unwrapped_text(answer.response), Text("")]
    return Group(*(parts or [Text("no call is recorded here")]))


def attempt_diffs(trace: RunTrace, *, accepted_only: bool) -> tuple[AttemptDiff, ...]:
    """What the attempts changed, in order, without those that changed nothing."""
    return tuple(
        AttemptDiff(
            place=entry.place,
            attempt=row.attempt,
            outcome=row.outcome.value,
            stands=entry.is_accepted(row),
            diff=row.diff,
        )
        for entry in trace.passes
        for row in entry.attempts
        if row.diff and (entry.is_accepted(row) or not accepted_only)
    )


def result_diffs(workspace: Workspace, trace: RunTrace) -> tuple[AttemptDiff, ...]:
    """The whole run's change as git has it; for a part of the run, or if the commits are gone, attempt by attempt."""
    run = trace.run
    if trace.place or run is None or not run.result_commit:
        return attempt_diffs(trace, accepted_only=not trace.place)
    try:
        text = diff(open_repository(workspace.repo), run.snapshot_commit, run.result_commit)
    except GitError:
        return attempt_diffs(trace, accepted_only=True)
    return (AttemptDiff(place="", attempt=0, outcome=run.status.value, stands=True, diff=text),)


def render_diffs(diffs: tuple[AttemptDiff, ...]) -> Group:
    """The diffs, each under the attempt that made it; the whole run's diff has no heading."""
    parts: list[RenderableType] = []
    for entry in diffs:
        if entry.place:
            words = f"{entry.place}: {entry.outcome.replace('_', ' ')}{'' if entry.stands else ', undone'}"
            parts.append(Text(words, style="bold green" if entry.stands else "bold yellow"))
        code = entry.diff.rstrip("\n")
        parts.append(Syntax(code, "diff", theme="ansi_dark", background_color="default"))
    return Group(*(parts or [Text("no change is recorded here")]))


def _unwrapped_text(text: str) -> Text:
    """Lines as they are, whatever the width."""
    return Text(text.rstrip("\n"), no_wrap=True)


def _head(text: CallTexts) -> Text:
    site = text.head.site
    item = f" {site.item}" if site.item else ""
    said = f"=== call {text.head.id}  {text.place}  {site.call_type}{item}  {model_name(text.head.model.tag)}"
    return Text(said, style="bold cyan")


FULL, TIGHT = 0.9, 0.7
"""Shares of a window from which on a prompt is shown in red, or in yellow."""
HEADS = ("rules", "task", "code", "rest", "estimate", "counted", "answer", "full")
WIDTHS = (7, 7, 7, 7, 9, 9, 13, 6)


class WindowUse(Struct, frozen=True, kw_only=True):
    """One call's window, in tokens."""

    call: CallSummary
    place: str
    """Of its pass."""
    window: int
    """All of it."""
    reserved: int
    """The part of the pass's window that is reserved."""
    rules: int | None = None
    """System text, the prompt's own words, and its example. This and the next three divide the estimate by characters; None for
    a call that was recorded before the origin of its lines was stored.
    """
    task: int | None = None
    code: int | None = None
    """Files, outlines and candidates, with their frames."""
    rest: int | None = None
    """Plan, diff, evidence, earlier attempts and answers."""

    @property
    def slack(self) -> int:
        """The window minus the estimate and the answer's limit; negative if the server's own count let the call be sent."""
        return self.window - self.call.cost.estimated_tokens - (self.call.limits.answer or 0)

    @property
    def shares(self) -> tuple[int | None, ...]:
        """Rules, task, code and the rest."""
        return self.rules, self.task, self.code, self.rest


def window_uses(conn: Connection, trace: RunTrace) -> tuple[WindowUse, ...]:
    """The windows of the calls, in order."""
    wanted = {call.id for call in trace.calls}
    return tuple(
        WindowUse(
            call=call,
            place=entry.place,
            window=entry.window_of(call),
            reserved=entry.row.reserved_tokens,
            **_token_shares(conn, call),
        )
        for entry in trace.passes
        for call in entry.calls
        if call.id in wanted
    )


def windows_object(uses: tuple[WindowUse, ...]) -> list[dict[str, Any]]:
    """The windows as `--json` answers them."""
    return [
        {
            **call_object(use.call, use.place, use.window),
            **dict(zip(HEADS[:4], use.shares, strict=True)),
            "reserved": use.reserved,
            "slack": use.slack,
        }
        for use in uses
    ]


def render_windows(uses: tuple[WindowUse, ...]) -> Group:
    """Two lines per call under its pass and window; below, how far estimates were off."""
    if not uses:
        return Group(Text("no call is recorded here"))
    lines = [Text("call\n" + _table_row(HEADS), style="dim")]
    heading = ""
    for use in uses:
        above = f"{use.place}, {counted(use.window, 'token')}".removeprefix(", ")
        if above != heading:
            lines.append(Text(above, style="bold"))
            heading = above
        cost, limit = use.call.cost, use.call.limits.answer
        given = "" if cost.completion_tokens is None else f"{cost.completion_tokens:,}"
        answer = given if limit is None else f"{given}/{limit:,}"
        figures = (*use.shares, cost.estimated_tokens, cost.prompt_tokens)
        full = cost.read_tokens / use.window if use.window else 0.0
        style = "red" if full >= FULL else "yellow" if full >= TIGHT else ""
        cells = (*("" if figure is None else f"{figure:,}" for figure in figures), answer, f"{full:.0%}")
        lines.append(Text(f"  {use.call.id} {use.call.site.call_type}"))
        lines.append(Text(_table_row(cells), style=style))
    costs = [use.call.cost for use in uses]
    ratios = [
        cost.prompt_tokens / cost.estimated_tokens
        for cost in costs
        if cost.prompt_tokens and cost.estimated_tokens
    ]
    if ratios:
        said = f"\ncounted tokens were {min(ratios):.0%} to {max(ratios):.0%} of the estimates"
        lines.append(Text(said, style="red" if max(ratios) > 1 else "dim"))
    if any(use.rules is None for use in uses):
        said = f"\nwhat filled the windows is not known of calls that were {BEFORE_SPANS}"
        lines.append(Text(said, style="dim"))
    return Group(*lines)


def _table_row(cells: tuple[str, ...]) -> str:
    return "".join(f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS, strict=True))


def _token_shares(conn: Connection, summary: CallSummary) -> dict[str, int]:
    """What each kind of text takes of the estimate, by characters; empty if it is not known."""
    call: ModelCall | None = get_call(conn, summary.id)
    assert call is not None, "a call of the trace is in the record"
    lines = prompt_lines(call)
    if lines is None:
        return {}
    letters = Counter({"rules": len(call.request.system_prompt)})
    for line in lines:
        letters[_share_name(line.kind)] += len(line.text) + 1
    scale = call.cost.estimated_tokens / max(letters.total(), 1)
    return {name: round(letters[name] * scale) for name in HEADS[:4]}


def _share_name(kind: PromptSource) -> str:
    if kind in {PromptSource.RULES, PromptSource.EXAMPLE}:
        return "rules"
    if kind in CODE:
        return "code"
    return "task" if kind is PromptSource.TASK else "rest"
