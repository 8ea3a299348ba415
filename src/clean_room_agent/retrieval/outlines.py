"""Code in short: signatures and documentation from the index, never cut from the source."""

from collections.abc import Mapping
from textwrap import indent

from clean_room_agent.retrieval.pieces import VALUES, Piece
from clean_room_agent.retrieval.source import FileView

NAMES_IN_OUTLINE = 10
MOST_NAMES = 60
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


def file_outline(view: FileView, scores: Mapping[tuple[str, int], float]) -> str:
    """The signatures of the file's pieces nearest to the task, in the order of their lines; how many more is said."""
    named = [piece for piece in view.pieces if piece.kind not in {"code", "imports"}]
    near = sorted(
        named, key=lambda piece: (-scores.get((view.row.path, piece.start_line), 0.0), piece.start_line)
    )
    shown = sorted(near[:NAMES_IN_OUTLINE], key=lambda piece: piece.start_line)
    lines = [f"{piece.name}: {_shorten(piece.signature, MOST_CHARS)}" for piece in shown]
    if len(named) > len(shown):
        lines.append(f"({len(named) - len(shown)} more definitions)")
    return "\n".join((*lines, "")) if lines else f"({len(view.text.lines)} lines without definitions)\n"


def names_outline(view: FileView) -> str:
    """The names of the file's classes, functions and methods with their lines, in order; how many more is said."""
    named = [entry for entry in view.definitions if entry.kind not in VALUES]
    lines = [f"{entry.start_line}-{entry.end_line} {entry.name}" for entry in named[:MOST_NAMES]]
    if len(named) > MOST_NAMES:
        lines.append(f"({len(named) - MOST_NAMES} more definitions)")
    return "\n".join((*lines, "")) if lines else f"({len(view.text.lines)} lines without definitions)\n"


def first_line(text: str) -> str:
    """The first line that is not blank, shortened, with its end."""
    return _shorten(next((line for line in text.split("\n") if line.strip()), ""), MOST_CHARS) + "\n"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _shorten(text: str, most: int) -> str:
    """The text in one line; from a longer one as many characters as are allowed, and how many more there are."""
    line = _one_line(text)
    return line if len(line) <= most else f"{line[:most]} (and {len(line) - most} more characters)"
