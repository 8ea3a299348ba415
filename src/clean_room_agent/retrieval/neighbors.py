"""Code that hangs together with what is likely to be changed: what uses it, what it uses, the tests that run it."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from clean_room_agent.db.curated.symbols import NeighborRow
from clean_room_agent.query.file_kinds import is_test_file
from clean_room_agent.retrieval.pieces import Piece
from clean_room_agent.retrieval.relevance import PieceKey, holds_frame, is_named
from clean_room_agent.retrieval.room_files import NotEditable
from clean_room_agent.retrieval.source import FileView, RepositorySource
from clean_room_agent.retrieval.stage import Candidate
from clean_room_agent.retrieval.units import Desk, Unit

MAX_SEEDS = 6
"""Pieces whose neighbours are looked at: those that a plan or a stack frame names, then the nearest to the task."""
MIN_SEED_SCORE = 0.3
MAX_SYMBOLS = 20
"""Definitions looked at within one piece, such as the methods of a class."""
MIN_CONFIDENCE = 0.5
"""Of a reference; below it, a name is shared by too many definitions to say which is meant."""
MAX_ROWS = 100
"""References looked at in either direction, the surest first."""
MAX_EACH_WAY = 4
"""Callers and callees of one definition, the surest first; tests come on top."""
MAX_TESTS = 2
MAX_UNITS = 12
"""Pieces of files out of scope that are offered, best first."""
SHARE = 0.5
"""What a neighbour's score is of the score of the piece that it hangs together with."""
TIER = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Link:
    """A definition and how it hangs together with a seed."""

    path: str
    line: int
    relation: str
    score: float


def with_neighbors(
    units: Sequence[Unit], desk: Desk, source: RepositorySource, *, room_tokens: int
) -> list[Unit]:
    """The units with how they hang together with the likeliest of them, and the best of what does so in other files."""
    found: dict[tuple[str, int], list[_Link]] = defaultdict(list)
    for link in sorted(
        _links(desk, source), key=lambda link: (-link.score, link.path, link.line, link.relation)
    ):
        found[link.path, link.line].append(link)
    related = [_related(unit, found) for unit in units]
    shown = {entry.path for entry, _ in desk.views}
    others = {place: links for place, links in found.items() if place[0] not in shown}
    return related + _foreign(others, desk, source, room_tokens)


def _links(desk: Desk, source: RepositorySource) -> Iterator[_Link]:
    for view, piece, score in _seeds(desk):
        inside = [
            entry
            for entry in view.definitions
            if piece.start_line <= entry.start_line and entry.end_line <= piece.end_line
        ]
        for definition in inside[:MAX_SYMBOLS]:
            callers = source.kb.get_symbol_neighbors(definition.symbol_id, direction="callers")
            callees = source.kb.get_symbol_neighbors(definition.symbol_id, direction="callees")
            rows = (*callers[:MAX_ROWS], *callees[:MAX_ROWS])
            for row in _surest(rows, source, within=(view.row.id, piece)):
                name = definition.name
                relation = f"uses {name}" if row.direction == "caller" else f"used by {name}"
                yield _Link(
                    path=source.path_of(row.symbol.file_id),
                    line=row.symbol.start_line,
                    relation=relation,
                    score=round(SHARE * score * row.confidence, 4),
                )


def _seeds(desk: Desk) -> list[tuple[FileView, Piece, float]]:
    """The pieces that are likeliest to be changed, with their scores."""
    ranked = []
    for entry, view in desk.views:
        for piece in view.pieces:
            score = desk.scores[entry.path, piece.start_line]
            named = is_named(piece, desk.hints.planned) or holds_frame(entry.path, piece, desk.hints.frames)
            if piece.kind != "code" and (named or score >= MIN_SEED_SCORE):
                ranked.append(((not named, -score, entry.path, piece.start_line), view, piece, score))
    ranked.sort(key=lambda one: one[0])
    return [(view, piece, score) for _, view, piece, score in ranked[:MAX_SEEDS]]


def _surest(
    rows: Sequence[NeighborRow], source: RepositorySource, *, within: tuple[int, Piece]
) -> Iterator[NeighborRow]:
    """The first callers, callees and tests; each definition once, and none that stands in the piece itself."""
    file_id, piece = within
    counts: dict[str, int] = defaultdict(int)
    seen: set[int] = set()
    for row in rows:
        inside = row.symbol.file_id == file_id and piece.start_line <= row.symbol.start_line <= piece.end_line
        if row.confidence < MIN_CONFIDENCE or inside or row.symbol.id in seen:
            continue
        test = row.direction == "caller" and is_test_file(source.path_of(row.symbol.file_id))
        way = "test" if test else row.direction
        if counts[way] < (MAX_TESTS if test else MAX_EACH_WAY):
            counts[way] += 1
            seen.add(row.symbol.id)
            yield row


def _related(unit: Unit, found: Mapping[tuple[str, int], Sequence[_Link]]) -> Unit:
    first = 1 if unit.piece is None else unit.piece.start_line
    last = len(unit.view.text.lines) if unit.piece is None else unit.piece.end_line
    links = [
        link
        for definition in unit.view.definitions
        if first <= definition.start_line <= last
        for link in found.get((unit.entry.path, definition.start_line), ())
    ]
    if not links:
        return unit
    relations = tuple(dict.fromkeys(link.relation for link in links))
    return replace(unit, relations=relations, score=max(unit.score, *(link.score for link in links)))


def _foreign(
    others: Mapping[tuple[str, int], Sequence[_Link]], desk: Desk, source: RepositorySource, room_tokens: int
) -> list[Unit]:
    """Units of files that are not in scope, best first."""
    units: dict[PieceKey, Unit] = {}
    views: dict[str, FileView | NotEditable] = {}
    for (path, line), links in others.items():
        if len(units) == MAX_UNITS:
            break
        row = source.file(path)
        if row is None:
            continue
        if path not in views:
            views[path] = source.view(path, max_lines=desk.max_lines, room_tokens=room_tokens)
        view = views[path]
        piece = None if isinstance(view, NotEditable) else _piece_at(view, line)
        if isinstance(view, NotEditable) or piece is None:
            continue
        relations = tuple(link.relation for link in links)
        entry = Candidate(path=path, file_id=row.id, tier=TIER, score=links[0].score, reasons=relations)
        unit = Unit(entry=entry, view=view, piece=piece, score=links[0].score, relations=relations)
        known = units.get(unit.key)
        if known is not None:
            unit = replace(known, relations=tuple(dict.fromkeys((*known.relations, *relations))))
        units[unit.key] = unit
    return list(units.values())


def _piece_at(view: FileView, line: int) -> Piece | None:
    """The definition that holds the line; code outside of definitions is none."""
    return next(
        (
            piece
            for piece in view.pieces
            if piece.kind != "code" and piece.start_line <= line <= piece.end_line
        ),
        None,
    )
