"""What filled each call's window: rules, task, code and the rest, the answer and its limit, and free space."""

from collections import Counter
from typing import Any

from msgspec import Struct
from rich.console import Group
from rich.text import Text

from clean_room_agent.artifacts.model_calls import CallSummary, ModelCall
from clean_room_agent.artifacts.names import counted
from clean_room_agent.artifacts.prompt_sources import PromptSource
from clean_room_agent.db.raw.calls import get_call
from clean_room_agent.db.rows import Connection
from clean_room_agent.report.prompt_lines import BEFORE_SPANS, CODE, prompt_lines
from clean_room_agent.report.run_view import call_object
from clean_room_agent.report.trace import RunTrace

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
        """The window minus the estimate and the answer's limit; negative if the call was sent because of the server's own
        count.
        """
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
            **_shares(conn, call),
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
    lines = [Text("call\n" + _row(HEADS), style="dim")]
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
        lines.append(Text(_row(cells), style=style))
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


def _row(cells: tuple[str, ...]) -> str:
    return "".join(f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS, strict=True))


def _shares(conn: Connection, summary: CallSummary) -> dict[str, int]:
    """What each kind of text takes of the estimate, by characters; empty if it is not known."""
    call: ModelCall | None = get_call(conn, summary.id)
    assert call is not None, "a call of the trace is in the record"
    lines = prompt_lines(call)
    if lines is None:
        return {}
    letters = Counter({"rules": len(call.request.system_prompt)})
    for line in lines:
        letters[_share(line.kind)] += len(line.text) + 1
    scale = call.cost.estimated_tokens / max(letters.total(), 1)
    return {name: round(letters[name] * scale) for name in HEADS[:4]}


def _share(kind: PromptSource) -> str:
    if kind in {PromptSource.RULES, PromptSource.EXAMPLE}:
        return "rules"
    if kind in CODE:
        return "code"
    return "task" if kind is PromptSource.TASK else "rest"
