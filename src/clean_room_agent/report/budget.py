"""What filled each window: estimated and counted tokens of every call."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Struct

from clean_room_agent.artifacts.model_calls import CallSummary
from clean_room_agent.json_values import FLAT
from clean_room_agent.llm.probes import PROBE_NAME
from clean_room_agent.report.trace import Chosen, PassTrace

FULL, TIGHT = 0.9, 0.7
"""Shares of a window from which on a prompt is shown in red, or in yellow."""


class CallTokens(Struct, frozen=True, kw_only=True):
    """The tokens of one call, with their limits."""

    estimated: int
    actual: int | None
    """As the server counted them; None if it did not say."""
    answer: int | None
    answer_limit: int | None
    window: int

    @property
    def used(self) -> int:
        """Tokens of the prompt: counted, else estimated."""
        return self.estimated if self.actual is None else self.actual


class CallLine(Struct, frozen=True, kw_only=True):
    """One call and what it cost."""

    call_id: int
    place: str
    call_type: str
    item: str
    model: str
    tokens: Annotated[CallTokens, FLAT]
    seconds: float
    ended: str
    """Why generation ended and how the answer was read, in a few words."""


def call_line(call: CallSummary, entry: PassTrace) -> CallLine:
    """The call in one line; its window is the one that the request asked for, or else the pass's."""
    return CallLine(
        call_id=call.id,
        place=entry.place,
        call_type=call.site.call_type,
        item=call.site.item,
        model=call.model.tag,
        tokens=CallTokens(
            estimated=call.cost.estimated_tokens,
            actual=call.cost.prompt_tokens,
            answer=call.cost.completion_tokens,
            answer_limit=call.limits.answer,
            window=call.limits.window or entry.row.context_window,
        ),
        seconds=call.cost.latency_ms / 1000,
        ended=_ended(call),
    )


def budget(chosen: Chosen) -> tuple[CallLine, ...]:
    """The chosen calls, in order."""
    wanted = {call.id for call in chosen.calls}
    return tuple(
        call_line(call, entry) for entry in chosen.passes for call in entry.calls if call.id in wanted
    )


def fullest(calls: Sequence[CallSummary], window: int) -> tuple[int, int]:
    """(tokens, window) of the prompt that left the smallest part of its window free, without probes, which must not
    fit.
    """
    best = (0, 0)
    for call in calls:
        used = call.cost.read_tokens
        mine = call.limits.window or window
        if call.site.call_type != PROBE_NAME and mine and used * max(best[1], 1) >= best[0] * mine:
            best = (used, mine)
    return best


def _ended(call: CallSummary) -> str:
    if call.site.call_type == PROBE_NAME:
        return "refused, as it must be" if call.ending.finish.startswith("error:") else "not refused"
    words = [call.ending.finish.removeprefix("error:") if call.ending.error else call.ending.finish]
    if call.ending.error:
        words.append(call.ending.error)
    elif call.read is not None:
        words.append(f"{call.read.reading}: {call.read.fault}" if call.read.fault else call.read.reading)
    if call.site.attempt:
        words.append(f"asked again ({call.site.attempt})")
    return ", ".join(words)
