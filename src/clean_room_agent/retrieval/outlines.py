"""Code in short: signatures and documentation from the index, never cut from the source."""

from collections.abc import Mapping, Sequence
from textwrap import indent

from clean_room_agent.retrieval.pieces import Piece
from clean_room_agent.retrieval.source import FileView

NAMES_IN_OUTLINE = 15
NOTES_SHOWN = 3
MOST_CHARS = 300
"""Of a signature or a line of documentation in a list to choose from: a packed file has lines larger than a window."""


def summary(piece: Piece) -> str:
    """Signature, documentation, and the first comments that give a reason."""
    parts = [piece.signature]
    if piece.doc:
        parts.append(indent(piece.doc, "    "))
    parts.extend(f"    {note}" for note in piece.notes[:NOTES_SHOWN])
    return "\n".join((*parts, ""))


def signature(piece: Piece) -> str:
    """The signature alone."""
    return f"{piece.signature}\n"


def file_outline(view: FileView, scores: Mapping[tuple[str, int], float]) -> str:
    """The signatures of the file's pieces nearest to the task, in the order of their lines; how many more is said."""
    named = [piece for piece in view.pieces if piece.kind != "code"]
    near = sorted(
        named, key=lambda piece: (-scores.get((view.row.path, piece.start_line), 0.0), piece.start_line)
    )
    shown = sorted(near[:NAMES_IN_OUTLINE], key=lambda piece: piece.start_line)
    lines = [f"{piece.name}: {_shorten(piece.signature, MOST_CHARS)}" for piece in shown]
    if len(named) > len(shown):
        lines.append(f"({len(named) - len(shown)} more definitions)")
    return "\n".join((*lines, "")) if lines else f"({len(view.text.lines)} lines without definitions)\n"


def option_text(path: str, piece: Piece) -> str:
    """The piece as a judge is shown it: `path :: name`, its signature, the first line of its documentation."""
    doc = _shorten(piece.doc.split("\n", 1)[0], MOST_CHARS)
    words = f"{path} :: {piece.name} | {_shorten(piece.signature, MOST_CHARS)}"
    return f"{words} | {doc}" if doc else words


def file_option_text(view: FileView) -> str:
    """A small file as a judge is shown it."""
    names = ", ".join(_top_names(view.pieces)) or "no definitions"
    return f"{view.row.path} (whole file, {len(view.text.lines)} lines) | {names}"


def _top_names(pieces: Sequence[Piece]) -> list[str]:
    return [piece.name for piece in pieces if piece.kind == "symbol" and "." not in piece.name]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _shorten(text: str, most: int) -> str:
    """The text in one line; from a longer one as many characters as are allowed, and how many more there are."""
    line = _one_line(text)
    return line if len(line) <= most else f"{line[:most]} (and {len(line) - most} more characters)"
