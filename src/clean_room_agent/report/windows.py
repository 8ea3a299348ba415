"""What filled each call's window: rules, task, code and the rest, space for the answer, and free space."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Struct
from rich.console import Group
from rich.text import Text

from clean_room_agent.artifacts.model_calls import ModelCall
from clean_room_agent.artifacts.names import counted
from clean_room_agent.artifacts.prompt_sources import PromptSource
from clean_room_agent.db.raw.calls import get_call
from clean_room_agent.db.rows import Connection
from clean_room_agent.json_values import FLAT
from clean_room_agent.llm.token_estimator import FittedEstimator, InitialEstimator, TokenEstimator
from clean_room_agent.report.budget import FULL, TIGHT, CallLine, CallTokens, budget
from clean_room_agent.report.figure_table import FigureTable
from clean_room_agent.report.prompt_lines import BEFORE_SPANS, CODE, prompt_lines
from clean_room_agent.report.trace import Chosen

OWN = frozenset({PromptSource.RULES, PromptSource.EXAMPLE})


class PromptShares(Struct, frozen=True, kw_only=True):
    """The parts of a prompt's estimate; None for a call that was recorded before the origin of its lines was stored."""

    rules: int | None = None
    """System text and the prompt's own words; what the server adds around them is only in the estimate."""
    task: int | None = None
    code: int | None = None
    """Files, outlines and candidates, with their frames."""
    rest: int | None = None
    """Plan, diff, evidence, earlier attempts and answers."""

    @property
    def known(self) -> int:
        """Tokens of all known parts together."""
        return sum(share or 0 for share in (self.rules, self.task, self.code, self.rest))


class WindowAccount(Struct, frozen=True, kw_only=True):
    """One call's window, in tokens. Estimates are those at the time of the call."""

    call: Annotated[CallLine, FLAT]
    shares: Annotated[PromptShares, FLAT]
    reserved: int
    """The part of the pass's window that is reserved."""
    slack: int
    """The window minus the estimate and the answer's limit; negative if the call was sent because of the server's own
    count.
    """


class EstimatorLine(Struct, frozen=True, kw_only=True):
    """The estimator of a model's prompts."""

    model: str
    calibration_id: int | None
    pairs: int
    """Logged calls that it was fitted to; 0 at the start."""
    margin: float
    """The factor of a fit; at the start, tokens per piece of text."""


def estimator_lines(estimators: Mapping[str, TokenEstimator]) -> tuple[EstimatorLine, ...]:
    """The estimators of a task, by model."""
    return tuple(_estimator_line(tag, estimators[tag]) for tag in sorted(estimators))


def window_accounts(
    conn: Connection, chosen: Chosen, estimators: Mapping[str, TokenEstimator]
) -> tuple[WindowAccount, ...]:
    """The windows of the chosen calls, in order. For a model without an estimator, the initial one is used."""
    entries = {call.id: entry for entry in chosen.passes for call in entry.calls}
    accounts = []
    for line in budget(chosen):
        call = get_call(conn, line.call_id)
        assert call is not None, "a call of the trace is in the record"
        estimator = estimators.get(call.model.tag, InitialEstimator())
        accounts.append(
            WindowAccount(
                call=line,
                shares=_shares(call, estimator),
                reserved=entries[line.call_id].row.reserved_tokens,
                slack=line.tokens.window - line.tokens.estimated - (line.tokens.answer_limit or 0),
            )
        )
    return tuple(accounts)


def render_accounts(accounts: tuple[WindowAccount, ...]) -> Group:
    """A line per call under its pass and window; below, how far estimates were off."""
    if not accounts:
        return Group(Text("no call is recorded here"))
    heads = ("rules", "task", "code", "rest", "estimate", "counted", "answer", "full")
    table = FigureTable(name="call", heads=heads)
    heading = ""
    for account in accounts:
        line, tokens, shares = account.call, account.call.tokens, account.shares
        above = f"{line.place}, {counted(tokens.window, 'token')}".removeprefix(", ")
        if above != heading:
            table.add(Text(above, style="bold"))
            heading = above
        full = tokens.used / tokens.window if tokens.window else 0.0
        style = "red" if full >= FULL else "yellow" if full >= TIGHT else ""
        figures = (shares.rules, shares.task, shares.code, shares.rest, tokens.estimated, tokens.actual)
        table.add(
            Text(f"{line.call_id} {line.call_type}"),
            *("" if figure is None else f"{figure:,}" for figure in figures),
            _answer(tokens),
            Text(f"{full:.0%}", style=style),
        )
    told = [account.call.tokens for account in accounts]
    ratios = [one.actual / one.estimated for one in told if one.actual and one.estimated]
    tail: list[Text] = []
    if ratios:
        said = f"\ncounted tokens were {min(ratios):.0%} to {max(ratios):.0%} of the estimates"
        tail.append(Text(said, style="red" if max(ratios) > 1 else "dim"))
    if any(account.shares.rules is None for account in accounts):
        tail.append(
            Text(f"\nwhat filled the windows is not known of calls that were {BEFORE_SPANS}", style="dim")
        )
    return Group(table, *tail)


def _answer(tokens: CallTokens) -> str:
    """The answer's tokens, and their limit."""
    given = "" if tokens.answer is None else f"{tokens.answer:,}"
    return given if tokens.answer_limit is None else f"{given}/{tokens.answer_limit:,}"


def render_estimators(lines: tuple[EstimatorLine, ...]) -> Group:
    """A line per model: how its tokens were estimated."""
    said = [
        f"{line.model}: estimates fitted to {counted(line.pairs, 'logged call')}, margin {line.margin:.3f}"
        if line.pairs
        else f"{line.model}: {line.margin:g} tokens for a piece of text, because too few calls were known"
        for line in lines
    ]
    return Group(*(Text(line, style="dim") for line in said or ["how tokens were estimated is not recorded"]))


def _shares(call: ModelCall, estimator: TokenEstimator) -> PromptShares:
    texts: dict[str, list[str]] = {"rules": [call.request.system_prompt], "task": [], "code": [], "rest": []}
    lines = prompt_lines(call)
    if lines is None:
        return PromptShares()
    for line in lines:
        texts[_share(line.kind)].append(line.text)
    return PromptShares(**{name: estimator.count("\n".join(parts)) for name, parts in texts.items()})


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
