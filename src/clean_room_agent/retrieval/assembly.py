"""From what is to be shown to what fits: the package, its order, and the account of what was left out."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from clean_room_agent.artifacts.package import (
    BudgetAccount,
    ContextItem,
    ContextPackage,
    DroppedItem,
    Section,
    frame_items,
    quoted,
)
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.llm.router import Window
from clean_room_agent.retrieval.context_files import FileText
from clean_room_agent.retrieval.prompts.refilter import KEEP, REFILTER
from clean_room_agent.retrieval.selection.excerpts import first_line
from clean_room_agent.retrieval.stage import Decision, Judge, Option, Selection, StageContext, Verdict
from clean_room_agent.retrieval.stage_source import RepositorySource

STAGE = "assembly"
MOST_OTHERS = 20
"""Paths named of files that are not shown."""
DETAIL_ORDER = {"primary": 0, "supporting": 1, "type_context": 2}
SECTION_ORDER: dict[Section, int] = {
    "code": 0,
    "tests": 1,
    "conventions": 2,
    "uses": 3,
    "callers": 4,
    "green": 5,
}
"""What comes in first, and goes last where a prompt does not fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """The package, and a decision for each thing that was to be shown."""

    package: ContextPackage
    decisions: tuple[Decision, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    selection: Selection
    item: ContextItem
    verdict: Verdict | None = None
    """Of the refilter, where there was one."""

    @property
    def rank(self) -> tuple[int, int, int, float, str, int]:
        """By section, detail, tier, score; then by place, so that the order is total."""
        chosen = self.selection
        order = (SECTION_ORDER[chosen.section], DETAIL_ORDER[chosen.detail], chosen.tier)
        return (*order, -chosen.score, chosen.path, chosen.start_line)


class _Budget:
    """What is in so far, and what was left out."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens
        self.used = 0
        self.drafts: list[_Draft] = []
        self.left_out: list[tuple[_Draft, str]] = []

    @property
    def left(self) -> int:
        return self.tokens - self.used

    def add(self, draft: _Draft) -> None:
        self.drafts.append(draft)
        self.used += draft.item.tokens

    def leave_out(self, draft: _Draft, reason: str) -> None:
        self.left_out.append((draft, reason))

    def offer(self, draft: _Draft) -> bool:
        """Add the draft if it fits what is left; whether it did."""
        fits = draft.item.tokens <= self.left
        if fits:
            self.add(draft)
        return fits

    def shows(self, selection: Selection) -> bool:
        """Whether a primary item that is in already holds the selection's lines."""
        return any(
            draft.item.detail == "primary"
            and draft.item.path == selection.path
            and draft.item.start_line <= selection.start_line
            and selection.end_line <= draft.item.end_line
            for draft in self.drafts
        )


def assemble(context: StageContext, source: RepositorySource, window: Window, models: Judge) -> Assembled:
    """The package: by section, within it primary first, then supporting, then signatures, by tier and score.

    What does not fit is left out whole, lowest first, and recorded; what is left of the window stays empty.

    Raises:
        WindowExceeded: code that has to be changed is alone too large for the window, or none of it fits.
        RepositoryError: a file is not what was indexed.
    """
    budget = _Budget(context.available_tokens)
    drafts = _drafts(context.selections, source)
    wanted = [draft for draft in drafts if draft.selection.detail == "primary"]
    others = [draft for draft in drafts if draft.selection.detail != "primary"]
    gone = _add_primary(wanted, budget, context, models)
    for draft in others:
        if not budget.shows(draft.selection) and not budget.offer(draft):
            budget.leave_out(draft, _too_large(draft, budget))
    for draft in gone:
        if draft.selection.outline:
            budget.offer(_shorter(draft, source))
    return _finish(context, budget, source, window)


def _add_primary(
    wanted: Sequence[_Draft], budget: _Budget, context: StageContext, models: Judge
) -> list[_Draft]:
    """Adds what has to be seen whole; what of it is not shown, in order.

    What a plan names is in before anything is judged, if it fits together. What a refilter let go comes after what it
    kept: where there is room for it all the same, it does no harm.
    """
    fitting = [draft for draft in wanted if draft.item.tokens <= budget.tokens]
    large = [draft for draft in wanted if draft.item.tokens > budget.tokens]
    if large and not fitting and context.request.mode == "implement":
        _refuse_large(large[0], budget)
    for draft in large:
        budget.leave_out(draft, _too_large(draft, budget))
    gone, let_go = large, list[_Draft]()
    if _tokens(fitting) > budget.left:
        planned = [draft for draft in fitting if draft.selection.tier == 0]
        if planned and _tokens(planned) <= budget.left:
            for draft in planned:
                if not budget.shows(draft.selection):
                    budget.add(draft)
            fitting = [draft for draft in fitting if draft.selection.tier > 0]
        if _tokens(fitting) > budget.left:
            fitting, let_go = _refilter(fitting, budget, models)
    for draft in (*fitting, *let_go):
        if not budget.shows(draft.selection) and not budget.offer(draft):
            words = "refilter let it go, and it " if draft in let_go else ""
            budget.leave_out(draft, words + _too_large(draft, budget))
            gone.append(draft)
    return gone


def _tokens(drafts: Iterable[_Draft]) -> int:
    return sum(draft.item.tokens for draft in drafts)


def _refuse_large(draft: _Draft, budget: _Budget) -> NoReturn:
    path = quoted(draft.item.path)
    name = path if draft.item.symbol is None else f"{path} :: {draft.item.symbol}"
    raise WindowExceeded(
        f"{name} (lines {draft.item.start_line}-{draft.item.end_line}) has to be shown whole: about {draft.item.tokens} tokens,"
        f" and {budget.tokens} are available for code",
        hint="raise [budget].context_window (or lower reserved_tokens) for the model that reads it, or name smaller symbols in the plan",
    )


def _refilter(fitting: Sequence[_Draft], budget: _Budget, models: Judge) -> tuple[list[_Draft], list[_Draft]]:
    """Those that were judged to stay, and those that were let go, each best first.

    Where nothing was judged to stay, or the answer cannot be read, all stay, and the stated order decides.
    """
    options = [
        Option(
            key=f"{draft.item.path}:{draft.item.start_line}",
            name=f"{quoted(draft.item.path)} :: {draft.item.symbol or 'whole file'} (about {draft.item.tokens} tokens)",
            text=f"{draft.selection.outline or first_line(draft.item.text)}{draft.selection.reason}\n",
            score=draft.selection.score,
        )
        for draft in fitting
    ]
    remark = f"At most about {budget.left} tokens can stay."
    verdicts = models.sort(REFILTER, options, labels=(KEEP,), stage=STAGE, remark=remark)
    judged = [_judged(draft, verdict) for draft, verdict in zip(fitting, verdicts, strict=True)]
    if not any(verdict.label for verdict in verdicts):
        return [_because(draft, "all judged no: taken by rank") for draft in judged], []
    kept = [draft for draft, verdict in zip(judged, verdicts, strict=True) if verdict.label == KEEP]
    gone = [draft for draft, verdict in zip(judged, verdicts, strict=True) if verdict.label != KEEP]
    return kept, gone


def _judged(draft: _Draft, verdict: Verdict) -> _Draft:
    told = _because(draft, f"refilter: {verdict.reason}")
    return replace(told, verdict=verdict)


def _because(draft: _Draft, reason: str) -> _Draft:
    selection = replace(draft.selection, reason=f"{draft.selection.reason}; {reason}")
    return replace(draft, selection=selection)


def _finish(context: StageContext, budget: _Budget, source: RepositorySource, window: Window) -> Assembled:
    while budget.drafts:
        items = _with_neighbours(_display_order(budget.drafts), source)
        used = source.count(frame_items(items))
        if used <= budget.tokens:
            break
        last = budget.drafts.pop()
        budget.leave_out(last, "all frames together need more tokens than were counted")
    else:
        items, used = (), 0
    shown_paths = {item.path for item in items}
    ids = {entry.path: entry.file_id for entry in context.candidates}
    package = ContextPackage(
        pass_id=context.request.pass_id,
        task=context.request.task,
        items=items,
        dropped=tuple(_dropped(draft, reason) for draft, reason in budget.left_out),
        others=tuple(entry.path for entry in context.candidates if entry.path not in shown_paths)[
            :MOST_OTHERS
        ],
        budget=BudgetAccount(
            context_window=window.context, reserved_tokens=window.reserved, used_tokens=used
        ),
    )
    shown = [
        _decide(draft, ids.get(draft.item.path), included=True, reason=draft.selection.reason)
        for draft in budget.drafts
    ]
    out = [
        _decide(draft, ids.get(draft.item.path), included=False, reason=reason)
        for draft, reason in budget.left_out
    ]
    return Assembled(package=package, decisions=(*shown, *out))


def _drafts(selections: Iterable[Selection], source: RepositorySource) -> list[_Draft]:
    """One draft a selection (the most detailed where one thing was selected twice), in order of rank."""
    best: dict[tuple[str, str | None, int, int, Section], _Draft] = {}
    for selection in selections:
        draft = _draft(selection, source)
        if draft is None:
            continue
        key = (selection.path, selection.symbol, selection.start_line, selection.end_line, selection.section)
        if key not in best or draft.rank < best[key].rank:
            best[key] = draft
    return sorted(best.values(), key=lambda draft: draft.rank)


def _draft(selection: Selection, source: RepositorySource) -> _Draft | None:
    row = source.file(selection.path)
    text = None if row is None else source.files.read(selection.path, row.content_hash)
    if not isinstance(text, FileText):
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
    return _Draft(selection=selection, item=replace(item, tokens=_item_tokens(item, source.count)))


def _shorter(draft: _Draft, source: RepositorySource) -> _Draft:
    """The same as supporting code, by its outline."""
    selection = replace(draft.selection, detail="supporting")
    item = replace(draft.item, detail="supporting", text=selection.outline)
    return _Draft(selection=selection, item=replace(item, tokens=_item_tokens(item, source.count)))


def _item_tokens(item: ContextItem, count: Callable[[str], int]) -> int:
    return count(frame_items((item,)) + "\n")


def _display_order(drafts: Iterable[_Draft]) -> tuple[ContextItem, ...]:
    """By section; in it outlines before code, the file of the best item first, and the items of a file by line."""
    ordered = sorted(drafts, key=lambda draft: draft.rank)
    first: dict[tuple[Section, str], int] = {}
    for place, draft in enumerate(ordered):
        first.setdefault((draft.item.section, draft.item.path), place)
    ordered.sort(
        key=lambda draft: (
            SECTION_ORDER[draft.item.section],
            first[draft.item.section, draft.item.path],
            draft.item.symbol is not None,
            draft.item.start_line,
            draft.item.end_line,
        )
    )
    return tuple(draft.item for draft in ordered)


def _with_neighbours(items: Sequence[ContextItem], source: RepositorySource) -> tuple[ContextItem, ...]:
    """The items, those marked that share a frame with the one before: of code, where only empty lines stand between; of
    what is read only, where it is of the same file and kind.
    """
    marked: list[ContextItem] = []
    for item in items:
        before = marked[-1] if marked else None
        marked.append(item if before is None else replace(item, adjoins=_adjoin(before, item, source)))
    return tuple(marked)


def _adjoin(before: ContextItem, item: ContextItem, source: RepositorySource) -> bool:
    same = (before.path, before.section, before.detail) == (item.path, item.section, item.detail)
    if not same or before.symbol is None or item.symbol is None:
        return False
    if item.detail != "primary":
        return item.section == "uses"
    row = source.file(item.path)
    text = source.files.read(item.path, row.content_hash) if row is not None else None
    between = text.lines[before.end_line : item.start_line - 1] if isinstance(text, FileText) else ("?",)
    return before.end_line < item.start_line and not any(between)


def _too_large(draft: _Draft, budget: _Budget) -> str:
    return f"does not fit: about {draft.item.tokens} tokens, {budget.left} of {budget.tokens} are left"


def _dropped(draft: _Draft, reason: str) -> DroppedItem:
    return DroppedItem(
        path=draft.item.path,
        symbol=draft.item.symbol,
        detail=draft.item.detail,
        tokens=draft.item.tokens,
        reason=reason,
    )


def _decide(draft: _Draft, file_id: int | None, *, included: bool, reason: str) -> Decision:
    return Decision(
        stage=STAGE,
        subject=draft.selection.subject(file_id),
        included=included,
        detail=draft.item.detail,
        reason=reason,
        verdict=draft.verdict,
    )
