"""The last step of a retrieval: the selections that fit become the context package, and the rest is recorded."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NoReturn

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.context import (
    DETAILS,
    SECTIONS,
    BudgetAccount,
    ContextItem,
    ContextPackage,
    DroppedItem,
    Section,
    frame_items,
)
from clean_room_agent.artifacts.names import item_name, quoted
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.llm.router import Window
from clean_room_agent.retrieval.prompts import KEEP, REFILTER
from clean_room_agent.retrieval.scored_pieces import first_line
from clean_room_agent.retrieval.stage import Decision, Judge, Option, Selection, StageContext, Verdict
from clean_room_agent.retrieval.stage_source import RepositorySource

STAGE = "assembly"
MOST_OTHERS = 20
"""Files that are named in the package without being shown."""


class _Rendered(Struct, frozen=True, kw_only=True):
    """A selection and the item that would show it."""

    selection: Selection
    item: ContextItem
    verdict: Verdict | None = None
    """Of the refilter, where there was one."""

    @property
    def rank(self) -> tuple[int, int, int, float, str, int]:
        """By section, detail, tier and score, then by place to make the order total."""
        chosen = self.selection
        order = (SECTIONS.index(chosen.section), DETAILS.index(chosen.detail), chosen.tier)
        return (*order, -chosen.score, chosen.path, chosen.start_line)


class _Budget:
    """The tokens available for the package, what it contains so far, and what was left out."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens
        self.used = 0
        self.rendered: list[_Rendered] = []
        self.left_out: list[tuple[_Rendered, str]] = []

    @property
    def left(self) -> int:
        return self.tokens - self.used

    def add(self, one: _Rendered) -> None:
        self.rendered.append(one)
        self.used += one.item.tokens

    def leave_out(self, one: _Rendered, reason: str = "") -> None:
        """Record that the item does not fit, after a further reason."""
        fit = f"does not fit: about {one.item.tokens} tokens, {self.left} of {self.tokens} are left"
        self.left_out.append((one, f"{reason}{fit}"))

    def offer(self, one: _Rendered) -> bool:
        """Add the item if it fits the remaining tokens; returns whether it did."""
        fits = one.item.tokens <= self.left
        if fits:
            self.add(one)
        return fits

    def shows(self, selection: Selection) -> bool:
        """Whether a primary item that is already included contains the selection's lines."""
        return any(
            one.item.detail == "primary"
            and one.item.path == selection.path
            and one.item.start_line <= selection.start_line
            and selection.end_line <= one.item.end_line
            for one in self.rendered
        )


def assemble(
    context: StageContext, source: RepositorySource, window: Window, judge: Judge
) -> tuple[ContextPackage, tuple[Decision, ...]]:
    """Build the package, with a decision for each selection: in each section first primary items, then supporting ones, then signatures, by tier and score.

    An item that does not fit is left out entirely, lowest rank first, and recorded; the rest of the window stays empty.

    Raises:
        WindowExceeded: code that must be changed is by itself too large for the window, or none of it fits.
        RepositoryError: a file differs from what was indexed.
    """
    budget = _Budget(context.available_tokens)
    rendered = _render_all(context.selections, source)
    wanted = [one for one in rendered if one.selection.detail == "primary"]
    others = [one for one in rendered if one.selection.detail != "primary"]
    gone = _add_primary(wanted, budget, context, judge)
    for one in others:
        if not budget.shows(one.selection) and not budget.offer(one):
            budget.leave_out(one)
    for one in gone:
        if one.selection.outline:
            budget.offer(_as_supporting(one, source))
    return _finish_package(context, budget, source, window)


def _add_primary(
    wanted: Sequence[_Rendered], budget: _Budget, context: StageContext, judge: Judge
) -> list[_Rendered]:
    """Add the primary items that fit; return the others, in order.

    If everything that a plan names fits, it is added without asking. What the refilter rejected is offered last: if it
    fits after all, it does no harm.
    """
    fitting = [one for one in wanted if one.item.tokens <= budget.tokens]
    large = [one for one in wanted if one.item.tokens > budget.tokens]
    if large and not fitting and context.request.mode == "implement":
        _refuse_large(large[0], budget)
    for one in large:
        budget.leave_out(one)
    gone, let_go = large, list[_Rendered]()
    if _total_tokens(fitting) > budget.left:
        planned = [one for one in fitting if one.selection.tier == 0]
        if planned and _total_tokens(planned) <= budget.left:
            for one in planned:
                if not budget.shows(one.selection):
                    budget.add(one)
            fitting = [one for one in fitting if one.selection.tier > 0]
        if _total_tokens(fitting) > budget.left:
            fitting, let_go = _refilter_items(fitting, budget, judge)
    for one in (*fitting, *let_go):
        if not budget.shows(one.selection) and not budget.offer(one):
            budget.leave_out(one, "refilter let it go, and it " if one in let_go else "")
            gone.append(one)
    return gone


def _total_tokens(rendered: Iterable[_Rendered]) -> int:
    return sum(one.item.tokens for one in rendered)


def _refuse_large(one: _Rendered, budget: _Budget) -> NoReturn:
    name = item_name(quoted(one.item.path), one.item.symbol, (one.item.start_line, one.item.end_line))
    raise WindowExceeded(
        f"{name} has to be shown whole: about {one.item.tokens} tokens,"
        f" and {budget.tokens} are available for code",
        hint="raise [budget].context_window (or lower reserved_tokens) for the model that reads it, or name smaller symbols in the plan",
    )


def _refilter_items(
    fitting: Sequence[_Rendered], budget: _Budget, judge: Judge
) -> tuple[list[_Rendered], list[_Rendered]]:
    """Return those judged to stay and those rejected, each best first.

    If none is judged to stay, or the answer cannot be read, all stay and compete by rank.
    """
    options = [
        Option(
            key=f"{one.item.path}:{one.item.start_line}",
            name=f"{item_name(quoted(one.item.path), one.item.symbol or 'whole file')} (about {one.item.tokens} tokens)",
            text=f"{one.selection.outline or first_line(one.item.text)}{one.selection.reason}\n",
            score=one.selection.score,
        )
        for one in fitting
    ]
    remark = f"At most about {budget.left} tokens can stay."
    verdicts = judge.sort(REFILTER, options, labels=(KEEP,), stage=STAGE, remark=remark)
    judged = [
        replace(_with_reason(one, f"refilter: {verdict.reason}"), verdict=verdict)
        for one, verdict in zip(fitting, verdicts, strict=True)
    ]
    if not any(verdict.label for verdict in verdicts):
        return [_with_reason(one, "all judged no: taken by rank") for one in judged], []
    kept = [one for one, verdict in zip(judged, verdicts, strict=True) if verdict.label == KEEP]
    return kept, [one for one in judged if one not in kept]


def _with_reason(one: _Rendered, reason: str) -> _Rendered:
    selection = replace(one.selection, reason=f"{one.selection.reason}; {reason}")
    return replace(one, selection=selection)


def _finish_package(
    context: StageContext, budget: _Budget, source: RepositorySource, window: Window
) -> tuple[ContextPackage, tuple[Decision, ...]]:
    while budget.rendered:
        items = _with_neighbours(_display_order(budget.rendered), source)
        used = source.count(frame_items(items))
        if used <= budget.tokens:
            break
        last = budget.rendered.pop()
        budget.left_out.append((last, "all frames together need more tokens than were counted"))
    else:
        items, used = (), 0
    shown_paths = {item.path for item in items}
    ids = {entry.path: entry.file_id for entry in context.candidates}
    package = ContextPackage(
        pass_id=context.request.pass_id,
        task=context.request.task,
        items=items,
        dropped=tuple(
            DroppedItem(
                path=one.item.path,
                symbol=one.item.symbol,
                detail=one.item.detail,
                tokens=one.item.tokens,
                reason=reason,
            )
            for one, reason in budget.left_out
        ),
        others=tuple(entry.path for entry in context.candidates if entry.path not in shown_paths)[
            :MOST_OTHERS
        ],
        budget=BudgetAccount(
            context_window=window.context, reserved_tokens=window.reserved, used_tokens=used
        ),
    )
    shown = [
        _item_decision(one, ids.get(one.item.path), included=True, reason=one.selection.reason)
        for one in budget.rendered
    ]
    out = [_item_decision(one, ids.get(one.item.path), reason=reason) for one, reason in budget.left_out]
    return package, (*shown, *out)


def _render_all(selections: Iterable[Selection], source: RepositorySource) -> list[_Rendered]:
    """One for each selection, by rank; if a thing was selected twice, the more detailed one."""
    best: dict[tuple[str, str | None, int, int, Section], _Rendered] = {}
    for selection in selections:
        one = _render_selection(selection, source)
        if one is None:
            continue
        key = (selection.path, selection.symbol, selection.start_line, selection.end_line, selection.section)
        if key not in best or one.rank < best[key].rank:
            best[key] = one
    return sorted(best.values(), key=lambda one: one.rank)


def _render_selection(selection: Selection, source: RepositorySource) -> _Rendered | None:
    text = source.text(selection.path)
    if text is None:
        return None
    own_lines = selection.detail == "primary" or not selection.outline
    shown = text.span(selection.start_line, selection.end_line) if own_lines else selection.outline
    item = ContextItem(
        path=selection.path,
        detail=selection.detail,
        section=selection.section,
        symbol=selection.symbol,
        start_line=selection.start_line,
        end_line=selection.end_line,
        text=shown,
        tier=selection.tier,
        score=selection.score,
        reason=selection.reason,
        tokens=0,
        content_hash=text.content_hash,
    )
    return _rendered(selection, item, source)


def _as_supporting(one: _Rendered, source: RepositorySource) -> _Rendered:
    """The same as supporting code, shown by its outline."""
    selection = replace(one.selection, detail="supporting")
    item = replace(one.item, detail="supporting", text=selection.outline)
    return _rendered(selection, item, source)


def _rendered(selection: Selection, item: ContextItem, source: RepositorySource) -> _Rendered:
    """The item with its tokens, those of its frame included."""
    tokens = source.count(frame_items((item,)) + "\n")
    return _Rendered(selection=selection, item=replace(item, tokens=tokens))


def _display_order(rendered: Iterable[_Rendered]) -> tuple[ContextItem, ...]:
    """By section; within one, files by their best item, and in a file its outline first, then code by line."""
    ordered = sorted(rendered, key=lambda one: one.rank)
    first: dict[tuple[Section, str], int] = {}
    for place, one in enumerate(ordered):
        first.setdefault((one.item.section, one.item.path), place)
    ordered.sort(
        key=lambda one: (
            SECTIONS.index(one.item.section),
            first[one.item.section, one.item.path],
            one.item.symbol is not None,
            one.item.start_line,
            one.item.end_line,
        )
    )
    return tuple(one.item for one in ordered)


def _with_neighbours(items: Sequence[ContextItem], source: RepositorySource) -> tuple[ContextItem, ...]:
    """Mark items that share a frame with the one before.

    For code, only blank lines may be in between; for what is only read, both must be of the same file and kind.
    """
    adjoins = (_are_adjacent(before, item, source) for before, item in pairwise(items))
    return (*items[:1], *(replace(item, adjoins=one) for item, one in zip(items[1:], adjoins, strict=True)))


def _are_adjacent(before: ContextItem, item: ContextItem, source: RepositorySource) -> bool:
    same = (before.path, before.section, before.detail) == (item.path, item.section, item.detail)
    if not same or before.symbol is None or item.symbol is None:
        return False
    if item.detail != "primary":
        return item.section == "uses"
    text = source.text(item.path)
    between = ("?",) if text is None else text.lines[before.end_line : item.start_line - 1]
    return before.end_line < item.start_line and not any(between)


def _item_decision(one: _Rendered, file_id: int | None, *, included: bool = False, reason: str) -> Decision:
    return Decision(
        stage=STAGE,
        subject=one.selection.subject(file_id),
        included=included,
        detail=one.item.detail,
        reason=reason,
        verdict=one.verdict,
    )
