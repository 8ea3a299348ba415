"""What filled each call's window: rules, task, code and the rest, room for the answer, and what stayed free."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Group
from rich.text import Text

from clean_room_agent.artifacts.model_calls import ModelCall
from clean_room_agent.artifacts.prompt_sources import PromptSource
from clean_room_agent.db.raw.calls import get_call
from clean_room_agent.db.rows import Connection
from clean_room_agent.llm.token_estimator import FittedEstimator, InitialEstimator, TokenEstimator
from clean_room_agent.report.budget import FULL, TIGHT, CallLine, budget
from clean_room_agent.report.figure_table import FigureTable
from clean_room_agent.report.prompt_lines import BEFORE_SPANS, CODE, prompt_lines
from clean_room_agent.report.trace import Chosen

OWN = frozenset({PromptSource.RULES, PromptSource.EXAMPLE})


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowAccount(CallLine):
    """One call's window, in tokens. Estimates are those that the call was sent by."""

    reserved: int
    """Of the pass's window, kept from code."""
    rules: int | None
    """System text and the prompt's own words; the frame that the server puts around them is in the estimate alone. None, as
    the next three, of a call that was recorded before it was kept what its lines are.
    """
    task: int | None
    code: int | None
    """Files, outlines and candidates, with their frames."""
    rest: int | None
    """Plan, diff, evidence, earlier attempts and answers."""
    slack: int
    """The window less the estimate and the answer's limit; below 0 where the server's own count let it pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatorLine:
    """What a model's prompts were measured with."""

    model: str
    calibration_id: int | None
    pairs: int
    """Logged calls that it was fitted to; 0 at the start."""
    margin: float
    """What a fit was multiplied with; at the start, tokens for a piece of text."""


def estimator_lines(estimators: Mapping[str, TokenEstimator]) -> tuple[EstimatorLine, ...]:
    """The estimators of a task, by model."""
    return tuple(_estimator_line(tag, estimators[tag]) for tag in sorted(estimators))


def window_accounts(
    conn: Connection, chosen: Chosen, estimators: Mapping[str, TokenEstimator]
) -> tuple[WindowAccount, ...]:
    """The chosen calls' windows, in order. A model without a estimator is measured as at the start."""
    entries = {call.id: entry for entry in chosen.passes for call in entry.calls}
    accounts = []
    for line in budget(chosen):
        call = get_call(conn, line.call_id)
        assert call is not None, "a call of the trace is in the record"
        estimator = estimators.get(call.model.tag, InitialEstimator())
        fields: dict[str, Any] = {
            field.name: getattr(line, field.name) for field in dataclasses.fields(CallLine)
        }
        fields |= _shares(call, estimator)
        accounts.append(
            WindowAccount(
                **fields,
                reserved=entries[line.call_id].row.reserved_tokens,
                slack=line.window - line.estimated - (line.answer_limit or 0),
            )
        )
    return tuple(accounts)


def render_accounts(accounts: tuple[WindowAccount, ...]) -> Group:
    """A line a call under its pass and window; beneath, how far estimates were off."""
    if not accounts:
        return Group(Text("no call is recorded here"))
    heads = ("rules", "task", "code", "rest", "estimate", "counted", "answer", "full")
    table = FigureTable(name="call", heads=heads)
    heading = ""
    for line in accounts:
        above = f"{line.place}, {line.window:,} tokens".removeprefix(", ")
        if above != heading:
            table.add(Text(above, style="bold"))
            heading = above
        share = line.used / line.window if line.window else 0.0
        style = "red" if share >= FULL else "yellow" if share >= TIGHT else ""
        figures = (line.rules, line.task, line.code, line.rest, line.estimated)
        table.add(
            Text(f"{line.call_id} {line.call_type}"),
            *("" if figure is None else f"{figure:,}" for figure in figures),
            "" if line.actual is None else f"{line.actual:,}",
            _answer(line),
            Text(f"{share:.0%}", style=style),
        )
    ratios = [line.actual / line.estimated for line in accounts if line.actual and line.estimated]
    tail: list[Text] = []
    if ratios:
        said = f"\ncounted tokens were {min(ratios):.0%} to {max(ratios):.0%} of the estimates"
        tail.append(Text(said, style="red" if max(ratios) > 1 else "dim"))
    if any(line.rules is None for line in accounts):
        tail.append(
            Text(f"\nwhat filled the windows is not known of calls that were {BEFORE_SPANS}", style="dim")
        )
    return Group(table, *tail)


def _answer(line: WindowAccount) -> str:
    """The answer's tokens of those that it might have."""
    given = "" if line.answer is None else f"{line.answer:,}"
    return given if line.answer_limit is None else f"{given}/{line.answer_limit:,}"


def render_estimators(lines: tuple[EstimatorLine, ...]) -> Group:
    """A line a model: how its tokens were estimated."""
    said = [
        f"{line.model}: estimates fitted to {line.pairs} logged calls, margin {line.margin:.3f}"
        if line.pairs
        else f"{line.model}: {line.margin:g} tokens for a piece of text, as too few calls were known"
        for line in lines
    ]
    return Group(*(Text(line, style="dim") for line in said or ["how tokens were estimated is not recorded"]))


def _shares(call: ModelCall, estimator: TokenEstimator) -> dict[str, int | None]:
    """Tokens of the call's texts by what they are."""
    texts: dict[str, list[str]] = {"rules": [call.request.system_prompt], "task": [], "code": [], "rest": []}
    lines = prompt_lines(call)
    if lines is None:
        return dict.fromkeys(texts)
    for line in lines:
        texts[_share(line.kind)].append(line.text)
    return {name: estimator.count("\n".join(parts)) for name, parts in texts.items()}


def _share(kind: PromptSource) -> str:
    if kind in OWN:
        return "rules"
    if kind in CODE:
        return "code"
    return "task" if kind is PromptSource.TASK else "rest"


def _estimator_line(tag: str, estimator: TokenEstimator) -> EstimatorLine:
    if isinstance(estimator, FittedEstimator):
        return EstimatorLine(
            model=tag, calibration_id=estimator.calibration_id, pairs=estimator.pairs, margin=estimator.margin
        )
    factor = estimator.factor if isinstance(estimator, InitialEstimator) else 0.0
    return EstimatorLine(model=tag, calibration_id=None, pairs=0, margin=factor)
