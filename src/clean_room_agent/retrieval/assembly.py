"""From what is to be shown to what fits: the package, its order, and the account of what was left out."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from clean_room_agent.artifacts.package import (
    BudgetAccount,
    ContextItem,
    ContextPackage,
    DroppedItem,
    frame_items,
)
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.llm.router import Window
from clean_room_agent.retrieval.prompts.refilter import KEEP, REFILTER
from clean_room_agent.retrieval.room_files import FileText
from clean_room_agent.retrieval.source import RepositorySource
from clean_room_agent.retrieval.stage import Decision, Judge, Option, Ruling, Selection, StageContext

STAGE = "assembly"
REFERENCE_SHARE = 4
"""Code to be read only comes before the fill of target files up to this part of the room."""
FIRST_OF_EACH = 3
"""Pieces of each target file that come before further ones of any."""
MOST_OTHERS = 20
"""Paths named of files that are not shown."""
DETAIL_ORDER = {"primary": 0, "supporting": 1, "type_context": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """The package, and a decision for each thing that was to be shown."""

    package: ContextPackage
    decisions: tuple[Decision, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    selection: Selection
    item: ContextItem
    ruling: Ruling | None = None
    """Of the refilter, where there was one."""

    @property
    def rank(self) -> tuple[int, int, float, str, int]:
        """By detail, tier, score; then by place, so that the order is total."""
        chosen = self.selection
        return (DETAIL_ORDER[chosen.detail], chosen.tier, -chosen.score, chosen.path, chosen.start_line)


class _Room:
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

    def offer(self, draft: _Draft, *, bound: int | None = None) -> bool:
        """Whether the draft came in; it does not where it is larger than what is left, or than `bound`."""
        fits = draft.item.tokens <= min(self.left, self.left if bound is None else bound)
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
    """The package: primary first, then supporting, then signatures; within each by tier and score.

    What does not fit is left out whole, lowest first, and recorded. Of the fill of target files, the best piece of each
    (its imports) comes next after primary; the rest after supporting code of up to a quarter of the room, and before the
    rest of that.

    Raises:
        WindowExceeded: code that has to be changed is alone too large for the room, or none of it fits.
        RepositoryError: a file is not what was indexed.
    """
    room = _Room(context.room_tokens)
    drafts = _drafts(context.selections, source)
    wanted = [draft for draft in drafts if draft.selection.detail == "primary" and not draft.selection.fill]
    gone = _add_primary(wanted, room, context, models)
    fill = [draft for draft in drafts if draft.selection.fill]
    others = [draft for draft in drafts if draft.selection.detail != "primary"]
    leads, further = _fill_order(fill)
    for draft in leads:
        _add_fill(draft, room, source)
    late = _add_references(others, room, bound=room.tokens // REFERENCE_SHARE if fill else room.tokens)
    for draft in further:
        _add_fill(draft, room, source)
    for draft in gone:
        if draft.selection.outline:
            room.offer(_shorter(draft, source))
    for draft in late:
        if not room.shows(draft.selection) and not room.offer(draft):
            room.leave_out(draft, _too_large(draft, room))
    _check_targets(context, fill, room)
    return _finish(context, room, source, window)


def _check_targets(context: StageContext, fill: Sequence[_Draft], room: _Room) -> None:
    shown = any(draft.item.detail == "primary" for draft in room.drafts)
    if fill and not shown and context.request.mode == "implement":
        _refuse_large(min(fill, key=lambda draft: draft.item.tokens), room)


def _add_primary(wanted: Sequence[_Draft], room: _Room, context: StageContext, models: Judge) -> list[_Draft]:
    """Adds what has to be seen whole; what of it is not shown, in order.

    What a plan names is in before anything is judged, if it fits together. What a refilter let go comes after what it
    kept: where there is room for it all the same, it does no harm.
    """
    fitting = [draft for draft in wanted if draft.item.tokens <= room.tokens]
    large = [draft for draft in wanted if draft.item.tokens > room.tokens]
    if large and not fitting and context.request.mode == "implement":
        _refuse_large(large[0], room)
    for draft in large:
        room.leave_out(draft, _too_large(draft, room))
    gone, let_go = large, list[_Draft]()
    if _tokens(fitting) > room.left:
        planned = [draft for draft in fitting if draft.selection.tier == 0]
        if planned and _tokens(planned) <= room.left:
            for draft in planned:
                if not room.shows(draft.selection):
                    room.add(draft)
            fitting = [draft for draft in fitting if draft.selection.tier > 0]
        if _tokens(fitting) > room.left:
            fitting, let_go = _refilter(fitting, room, models)
    for draft in (*fitting, *let_go):
        if not room.shows(draft.selection) and not room.offer(draft):
            words = "refilter let it go, and it " if draft in let_go else ""
            room.leave_out(draft, words + _too_large(draft, room))
            gone.append(draft)
    return gone


def _tokens(drafts: Iterable[_Draft]) -> int:
    return sum(draft.item.tokens for draft in drafts)


def _refuse_large(draft: _Draft, room: _Room) -> NoReturn:
    name = draft.item.path if draft.item.symbol is None else f"{draft.item.path} :: {draft.item.symbol}"
    raise WindowExceeded(
        f"{name} (lines {draft.item.start_line}-{draft.item.end_line}) has to be shown whole: about {draft.item.tokens} tokens,"
        f" and the room for code is {room.tokens}",
        hint="raise [budget].context_window (or lower reserved_tokens) for the model that reads it, or name smaller symbols in the plan",
    )


def _refilter(fitting: Sequence[_Draft], room: _Room, models: Judge) -> tuple[list[_Draft], list[_Draft]]:
    """Those that were judged to stay, and those that were let go, each best first.

    Where nothing was judged to stay, or the answer cannot be read, all stay, and the stated order decides.
    """
    options = [
        Option(
            key=f"{draft.item.path}:{draft.item.start_line}",
            text=f"{draft.item.path} :: {draft.item.symbol or 'whole file'} | about {draft.item.tokens} tokens | {draft.selection.reason}",
            score=draft.selection.score,
        )
        for draft in fitting
    ]
    remark = f"There is room for about {room.left} tokens."
    rulings = models.sort(REFILTER, options, labels=(KEEP,), stage=STAGE, remark=remark)
    ruled = [_ruled(draft, ruling) for draft, ruling in zip(fitting, rulings, strict=True)]
    kept = [draft for draft, ruling in zip(ruled, rulings, strict=True) if ruling.label == KEEP]
    gone = [draft for draft, ruling in zip(ruled, rulings, strict=True) if ruling.label != KEEP]
    if not kept:
        return gone, []
    return kept, gone


def _ruled(draft: _Draft, ruling: Ruling) -> _Draft:
    selection = replace(draft.selection, reason=f"{draft.selection.reason}; refilter: {ruling.reason}")
    return replace(draft, selection=selection, ruling=ruling)


def _add_references(others: Sequence[_Draft], room: _Room, *, bound: int) -> list[_Draft]:
    """Adds what is read only up to `bound` tokens; what did not come in, in order."""
    late = []
    spent = 0
    for draft in others:
        if room.shows(draft.selection):
            continue
        if room.offer(draft, bound=bound - spent):
            spent += draft.item.tokens
        else:
            late.append(draft)
    return late


def _fill_order(fill: Sequence[_Draft]) -> tuple[list[_Draft], list[_Draft]]:
    """The best piece of each target file; then all others, first further ones of each, so that none is out of sight."""
    places: Counter[str] = Counter()
    keyed = []
    for draft in fill:
        place = places[draft.item.path]
        places[draft.item.path] += 1
        keyed.append((min(place, FIRST_OF_EACH), draft.rank, draft))
    keyed.sort(key=lambda entry: entry[:2])
    return [draft for place, _, draft in keyed if not place], [draft for place, _, draft in keyed if place]


def _add_fill(draft: _Draft, room: _Room, source: RepositorySource) -> None:
    if room.shows(draft.selection) or room.offer(draft):
        return
    reason = _too_large(draft, room)
    if draft.selection.outline and room.offer(_shorter(draft, source)):
        reason = f"{reason}; its outline is shown instead"
    room.leave_out(draft, reason)


def _finish(context: StageContext, room: _Room, source: RepositorySource, window: Window) -> Assembled:
    while room.drafts:
        items = _display_order(room.drafts)
        used = source.count(frame_items(items))
        if used <= room.tokens:
            break
        last = room.drafts.pop()
        room.leave_out(last, "all frames together need more room than was counted")
    else:
        items, used = (), 0
    shown_paths = {item.path for item in items}
    ids = {entry.path: entry.file_id for entry in context.candidates}
    package = ContextPackage(
        pass_id=context.request.pass_id,
        task=context.request.task,
        items=items,
        dropped=tuple(_dropped(draft, reason) for draft, reason in room.left_out),
        others=tuple(entry.path for entry in context.candidates if entry.path not in shown_paths)[
            :MOST_OTHERS
        ],
        budget=BudgetAccount(
            context_window=window.context, reserved_tokens=window.reserved, used_tokens=used
        ),
    )
    shown = [
        _decide(draft, ids.get(draft.item.path), included=True, reason=draft.selection.reason)
        for draft in room.drafts
    ]
    out = [
        _decide(draft, ids.get(draft.item.path), included=False, reason=reason)
        for draft, reason in room.left_out
    ]
    return Assembled(package=package, decisions=(*shown, *out))


def _drafts(selections: Iterable[Selection], source: RepositorySource) -> list[_Draft]:
    """One draft a selection (the most detailed where one thing was selected twice), in order of rank."""
    best: dict[tuple[str, str | None, int, int, bool], _Draft] = {}
    for selection in selections:
        draft = _draft(selection, source)
        if draft is None:
            continue
        key = (selection.path, selection.symbol, selection.start_line, selection.end_line, selection.fill)
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
        symbol=selection.symbol,
        start_line=selection.start_line,
        end_line=selection.end_line,
        text=shown,
        tier=selection.tier,
        score=selection.score,
        reason=selection.reason,
        tokens=0,
        content_hash=text.content_hash,
        fill=selection.fill and selection.detail == "primary",
    )
    return _Draft(selection=selection, item=replace(item, tokens=_item_tokens(item, source.count)))


def _shorter(draft: _Draft, source: RepositorySource) -> _Draft:
    """The same as supporting code, by its outline."""
    selection = replace(draft.selection, detail="supporting", fill=False)
    item = replace(draft.item, detail="supporting", text=selection.outline, fill=False)
    return _Draft(selection=selection, item=replace(item, tokens=_item_tokens(item, source.count)))


def _item_tokens(item: ContextItem, count: Callable[[str], int]) -> int:
    return count(frame_items((item,)) + "\n")


def _display_order(drafts: Iterable[_Draft]) -> tuple[ContextItem, ...]:
    """By detail; within it the file of the best item first, and the items of a file by line."""
    ordered = sorted(drafts, key=lambda draft: draft.rank)
    first: dict[tuple[str, str], int] = {}
    for place, draft in enumerate(ordered):
        first.setdefault((draft.item.detail, draft.item.path), place)
    ordered.sort(
        key=lambda draft: (
            DETAIL_ORDER[draft.item.detail],
            first[draft.item.detail, draft.item.path],
            draft.item.start_line,
            draft.item.end_line,
        )
    )
    return tuple(draft.item for draft in ordered)


def _too_large(draft: _Draft, room: _Room) -> str:
    return f"does not fit: about {draft.item.tokens} tokens, {room.left} of {room.tokens} are left"


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
        path=draft.item.path,
        symbol=draft.item.symbol,
        file_id=file_id,
        tier=draft.item.tier,
        score=draft.item.score,
        included=included,
        detail=draft.item.detail,
        reason=reason,
        call_id=None if draft.ruling is None else draft.ruling.call_id,
    )
