"""The files that a plan names: shown whole where they fit, else by the pieces that the task needs."""

from collections.abc import Mapping, Sequence

from clean_room_agent.retrieval.pieces import VALUES, Piece, enclosing_head, file_header
from clean_room_agent.retrieval.relevance import Hints, PieceKey, holds_frame, is_meant, is_named
from clean_room_agent.retrieval.source import FileView
from clean_room_agent.retrieval.stage import Candidate, Selection

FRAME_TOKENS = 24
"""About what an item's frame costs, for deciding what fits whole; the assembly counts exactly."""
HEADER_SCORE = 1.0
HEAD_SCORE = 0.95
"""Heads of classes come before all other code that nobody asked for, after the file's imports."""


def choose_whole(sizes: Mapping[str, int], asked: Mapping[str, int], room: int) -> frozenset[str]:
    """The files that are shown whole: from the smallest on, each that fits an even share of what is left.

    A large file so cannot push out a small one, nor the other way round; and no file pushes out what the plan names in
    another.

    Args:
        sizes: tokens of each file, by path.
        asked: of these, tokens of the pieces that are in without asking.
        room: tokens.
    """
    whole: set[str] = set()
    more = {path: size + FRAME_TOKENS - asked.get(path, 0) for path, size in sizes.items()}
    left = room - sum(asked.values())
    waiting = sorted(sizes, key=lambda path: (more[path], path))
    while waiting:
        path = waiting.pop(0)
        if more[path] > left // (len(waiting) + 1):
            break
        whole.add(path)
        left -= more[path]
    return frozenset(whole)


def asked_pieces(view: FileView, hints: Hints) -> dict[PieceKey, str]:
    """The pieces that are in without asking, with the reason."""
    asked = {}
    values = [
        entry for entry in view.definitions if entry.kind in VALUES and is_meant(entry.name, hints.planned)
    ]
    for piece in view.pieces:
        key = (view.row.path, piece.start_line)
        held = [entry.name for entry in values if piece.start_line <= entry.start_line <= piece.end_line]
        if is_named(piece, hints.planned):
            asked[key] = "named by the plan"
        elif piece.kind == "code" and held:
            asked[key] = f"holds {held[0]}, named by the plan"
        elif holds_frame(view.row.path, piece, hints.frames):
            asked[key] = "in a stack trace"
    return asked


def fill_selections(
    view: FileView,
    entry: Candidate,
    primary: frozenset[PieceKey],
    scores: Mapping[PieceKey, float],
    outlines: Mapping[PieceKey, str],
) -> tuple[Selection, ...]:
    """What else of a target file is shown while there is room: its imports, the heads of the classes whose members
    are primary, then its other pieces by score.
    """
    path = view.row.path
    header = file_header(view.pieces)
    heads = _heads_of(view.pieces, path, primary)
    selections = []
    for piece in view.pieces:
        key = (path, piece.start_line)
        if key in primary:
            continue
        score, reason = scores[key], "fill: room is left in a file to be changed"
        if piece is header:
            score, reason = HEADER_SCORE, "fill: the file's first lines (imports)"
        elif piece in heads:
            score, reason = HEAD_SCORE, "fill: head of a class whose member is shown"
        selections.append(
            piece_selection(
                piece, entry, score=score, reason=reason, outline=outlines.get(key, ""), fill=True
            )
        )
    return tuple(selections)


def piece_selection(
    piece: Piece, entry: Candidate, *, score: float, reason: str, outline: str = "", fill: bool = False
) -> Selection:
    """The piece shown whole."""
    return Selection(
        path=entry.path,
        symbol=piece.name,
        start_line=piece.start_line,
        end_line=piece.end_line,
        detail="primary",
        tier=entry.tier,
        score=score,
        reason=reason,
        outline=outline,
        fill=fill,
    )


def _heads_of(pieces: Sequence[Piece], path: str, primary: frozenset[PieceKey]) -> list[Piece]:
    shown = [piece for piece in pieces if (path, piece.start_line) in primary]
    return [head for piece in shown if (head := enclosing_head(pieces, piece)) is not None]
