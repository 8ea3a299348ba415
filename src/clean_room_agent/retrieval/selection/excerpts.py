"""Code in short: signatures with documentation, outlines of files, and the lines nearest to a task."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from textwrap import indent

from clean_room_agent.indexer.terms import count_terms
from clean_room_agent.retrieval.code.pieces import VALUES, Definition, Piece
from clean_room_agent.retrieval.stage_source import FileView

NOTES_SHOWN = 3
MOST_CHARS = 300
"""Of a signature or a line of documentation in a list: a minified file has lines larger than a window."""
QUOTED_CHARS = 160
"""Of a line, as it is quoted."""


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
    """The names and lines of the file's classes, functions and methods, in order; of more than `most`, the nearest, and
    how many more there are.
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


def nearest_lines(
    lines: Sequence[str], terms: Mapping[str, float], *, most: int, first: int = 1
) -> tuple[tuple[int, str], ...]:
    """Number and text of up to `most` lines that hold wanted terms, in the order of the file.

    The rarer a term is among the lines, the more it counts; of equal lines the first. `first` is the number of the
    first line given.
    """
    bags = [frozenset(count_terms(line)) & terms.keys() for line in lines]
    held = Counter(term for bag in bags for term in bag)
    weights = {term: terms[term] / math.log(2 + count) for term, count in held.items()}
    scores = [sum(weights[term] for term in sorted(bag)) for bag in bags]
    best = sorted(
        (place for place, score in enumerate(scores) if score > 0), key=lambda at: (-scores[at], at)
    )
    return tuple((first + place, quoted(lines[place])) for place in sorted(best[:most]))


def quoted(line: str) -> str:
    """The line, stripped, and cut if it is very long."""
    text = line.strip()
    return text if len(text) <= QUOTED_CHARS else f"{text[:QUOTED_CHARS]} [cut]"


def numbered(lines: Sequence[tuple[int, str]]) -> str:
    """Each line after its number."""
    return "".join(f"{number}: {text}\n" for number, text in lines)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _shorten(text: str, most: int) -> str:
    """The text in one line; from a longer one as many characters as are allowed, and how many more there are."""
    line = _one_line(text)
    return line if len(line) <= most else f"{line[:most]} (and {len(line) - most} more characters)"
