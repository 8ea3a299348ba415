"""What is shown of the files that a plan names: the named definitions, the imports, and the headers of the classes."""

from collections.abc import Callable, Collection, Sequence

from msgspec import Struct

from clean_room_agent.retrieval.pieces import CONTAINERS, VALUES, CodePiece, IndexedDefinition, enclosing_head
from clean_room_agent.retrieval.scored_pieces import (
    PieceHints,
    ScoredPiece,
    holds_frame,
    is_named,
    is_named_outright,
    matches_name,
)
from clean_room_agent.retrieval.stage import (
    Selection,
)
from clean_room_agent.retrieval.stage_source import FileView, RepositorySource

SMALL_FILE_LINES = 150
"""A file up to this long is shown whole, if it takes no more than one part in `SMALL_FILE_SHARE` of what is available."""
SMALL_FILE_SHARE = 4
HEADER_LINES = 25
"""The beginning of a file without imports is shown up to this length: imports may have to be added."""
VALUES_LINES = 15
"""The code right after the imports is shown up to this length: new constants belong there."""
HEAD_LINES = 25
"""The head of a class is shown with a member that is to be changed, unless it is longer."""


class PlannedFile(Struct, frozen=True, kw_only=True):
    """A file that a plan names."""

    pieces: tuple[ScoredPiece, ...]
    """Its pieces, in the order of their lines; at least one."""
    chosen: tuple[tuple[ScoredPiece, str], ...]
    """The pieces that are in without asking, with the reason."""
    uncertain: tuple[ScoredPiece, ...]
    """The pieces to be asked about, where the plan does not say which part of the file it means."""

    @property
    def view(self) -> FileView:
        """The file."""
        return self.pieces[0].view


def target_of(
    pieces: Sequence[ScoredPiece], hints: PieceHints, changed: Collection[tuple[str, str]]
) -> PlannedFile:
    """Decide which pieces of the file are included without asking, and which must be judged.

    Args:
        pieces: the file's.
        hints: what the plan names.
        changed: (path, name) of the pieces that were judged to be changed when the task was planned.
    """
    chosen: dict[int, tuple[ScoredPiece, str]] = {}
    view = pieces[0].view
    for scored in pieces:
        if reason := _named(scored.piece, view, hints.planned):
            chosen[scored.piece.start_line] = (scored, reason)
    for scored in pieces:
        if (scored.entry.path, scored.piece.name) in changed:
            chosen.setdefault(
                scored.piece.start_line, (scored, "judged to be changed when the task was planned")
            )
        elif not hints.planned and holds_frame(scored.entry.path, scored.piece, hints.frames):
            chosen.setdefault(scored.piece.start_line, (scored, "in a stack trace"))
    uncertain: tuple[ScoredPiece, ...] = ()
    undecided = not chosen
    if undecided or not hints.planned:  # a planner may be wrong about what it judged before
        for scored in pieces:
            if is_named_outright(scored.piece, hints):
                chosen.setdefault(scored.piece.start_line, (scored, "named by the task"))
    if undecided:
        uncertain = tuple(scored for scored in pieces if scored.piece.kind not in {"imports", "comment"})
    return PlannedFile(pieces=tuple(pieces), chosen=tuple(chosen.values()), uncertain=uncertain)


def is_small(view: FileView, source: RepositorySource, available_tokens: int) -> bool:
    """Whether the file is shown entirely."""
    lines = len(view.text.lines)
    return (
        lines <= SMALL_FILE_LINES
        and source.count(view.text.span(1, lines)) <= available_tokens // SMALL_FILE_SHARE
    )


def around(target: PlannedFile, shown: Collection[ScoredPiece]) -> list[Selection]:
    """What accompanies the shown pieces: imports, heads of their classes, and comments right above them.

    The imports are those of the file (or its short beginning) with a few lines after them.
    """
    pieces = [scored.piece for scored in target.pieces]
    heads = {
        head.start_line
        for scored in shown
        if (head := enclosing_head(pieces, scored.piece)) is not None
        and head.end_line - head.start_line < HEAD_LINES
    }
    below = {scored.piece.start_line for scored in shown}
    last_imports = max((place for place, piece in enumerate(pieces) if piece.kind == "imports"), default=None)
    known = {scored.key for scored in shown}
    selections = []
    for place, scored in enumerate(target.pieces):
        piece = scored.piece
        if scored.key in known:
            continue
        if piece.kind == "imports":
            selections.append(scored.select("primary", "the file's imports"))
        elif last_imports is None and not place and piece.kind == "code" and piece.end_line <= HEADER_LINES:
            selections.append(scored.select("primary", "the beginning of a file without imports"))
        elif (
            place - 1 == last_imports
            and piece.kind == "code"
            and piece.end_line - piece.start_line < VALUES_LINES
        ):
            selections.append(scored.select("primary", "what follows the imports: the place of new values"))
        elif piece.start_line in heads:
            selections.append(scored.select("primary", "head of a class with a member to be changed"))
        elif piece.kind == "comment" and piece.end_line + 1 in below:
            selections.append(scored.select("primary", "the comment above what is to be changed"))
    return selections


def _named(piece: CodePiece, view: FileView, planned: frozenset[str]) -> str:
    """Why the plan refers to the piece; "" if it does not."""
    if is_named(piece, planned):
        return "named by the plan"
    inside = [
        entry
        for entry in view.definitions
        if piece.start_line <= entry.start_line <= entry.end_line <= piece.end_line
    ]
    if piece.kind == "code":
        values = [
            entry.name for entry in inside if entry.kind in VALUES and matches_name(entry.name, planned)
        ]
        owner = piece.name.rpartition(" (lines ")[0]
        if owner and matches_name(owner, planned):
            return f"stands in {owner}, named by the plan"
    else:
        values = [
            entry.name for entry in inside if piece.kind == "symbol" and matches_name(entry.name, planned)
        ]
    return f"holds {values[0]}, named by the plan" if values else ""


def names_a_large_class(target: PlannedFile) -> bool:
    """Whether the plan names only classes of which the head alone is a piece, so that it may mean some of their members."""
    kinds = {entry.name: entry.kind for entry in target.view.definitions}
    return bool(target.chosen) and all(
        scored.piece.kind == "head" and kinds.get(scored.piece.name.removesuffix(" (head)")) in CONTAINERS
        for scored, _ in target.chosen
    )


def closeness_to(target: PlannedFile, shown: Sequence[Selection]) -> Callable[[IndexedDefinition], float]:
    """How close a definition is to the shown lines of the file."""
    lines = [one.start_line for one in shown if one.path == target.view.row.path and one.detail == "primary"]

    def closeness(entry: IndexedDefinition) -> float:
        return -min((abs(entry.start_line - line) for line in lines), default=entry.start_line)

    return closeness
