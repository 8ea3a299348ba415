"""Code in short: signatures and documentation from the index, never cut from the source."""

from collections.abc import Callable
from textwrap import indent

from clean_room_agent.retrieval.code.pieces import VALUES, Definition, Piece
from clean_room_agent.retrieval.stage_source import FileView

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


def short_summary(piece: Piece) -> str:
    """The signature in one line, and the first line of the documentation."""
    doc = piece.doc.strip().split("\n", 1)[0]
    lines = [_shorten(piece.signature, MOST_CHARS), *([f"    {_shorten(doc, MOST_CHARS)}"] if doc else [])]
    return "\n".join((*lines, ""))


def names_outline(view: FileView, nearness: Callable[[Definition], float], *, most: int) -> str:
    """The names of the file's classes, functions and methods with their lines, in order: of many the nearest, and how
    many more there are.
    """
    functions = {entry.name for entry in view.definitions if entry.kind in {"function", "method"}}
    named = [
        entry
        for entry in view.definitions
        if entry.kind not in VALUES and entry.name.rpartition(".")[0] not in functions
    ]
    near = sorted(named, key=lambda entry: (-nearness(entry), entry.start_line))[:most]
    lines = [
        f"{entry.start_line}-{entry.end_line} {entry.name}"
        for entry in sorted(near, key=lambda entry: (entry.start_line, -entry.end_line))
    ]
    if len(named) > len(near):
        lines.append(f"({len(named) - len(near)} more definitions)")
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
