"""Wraps lines between words at the terminal's width; continuation lines align with the column they continue."""

import re
import shutil
from collections.abc import Iterator
from itertools import pairwise
from typing import IO

WORD = re.compile(r"\S+")
GAP = re.compile(r"(?<=\S)  +(?=\S)")
"""Between two columns of a line."""
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
LEAST_COLUMN = 20
"""Columns that must be left for a column's text, or it goes on below the line's beginning."""
STEP = 2
"""How far a line that goes on is indented, where it has no columns."""


def folded(text: str, width: int) -> str:
    """`text` in lines of at most `width` columns, as far as its words allow."""
    lines: list[str] = []
    for line in text.split("\n"):
        rows = tuple(rows_of(line, width))
        lines.extend(" " * indent + line[start:end] for indent, start, end in rows)
    return "\n".join(lines)


def rows_of(line: str, width: int) -> Iterator[tuple[int, int, int]]:
    """Where to break a line: (spaces before, start, end) of each row of it. A word is broken nowhere, and neither is a
    column of the right half that fits on a row of its own.

    Example: `  cost    16 calls, 14,488 tokens, 58.5 s` in 30 columns goes on below `16`.
    """
    if _columns(line) <= width:
        yield 0, 0, len(line)
        return
    hanging = _hanging(line, width)
    own_rows = _columns_with_own_rows(line, width, hanging)
    indent = start = end = 0
    for word in WORD.finditer(line):
        own = own_rows.get(word.start())
        if end > start and own is not None and indent + _columns(line[start : own[1]]) > width:
            yield indent, start, end
            indent, start = own[0], word.start()
        elif end > start and indent + _columns(line[start : word.end()]) > width:
            yield indent, start, end
            indent, start = hanging, word.start()
        end = word.end()
    yield indent, start, end


def fitted(text: str, stream: IO[str]) -> str:
    """`text` as it is to be written to `stream`: folded at a terminal, as it is elsewhere."""
    if not stream.isatty():
        return text
    return folded(text, shutil.get_terminal_size().columns)


def _columns_with_own_rows(line: str, width: int, hanging: int) -> dict[int, tuple[int, int]]:
    """Of each column that begins in the right half, by where: the indent of a row that holds all of it, and its end.

    What stands left of it would leave it a narrow strip.
    """
    before = len(line) - len(line.lstrip(" "))
    starts = [gap.end() for gap in GAP.finditer(line, before)]
    found = {}
    for start, following in pairwise([*starts, len(line)]):
        end = start + len(line[start:following].rstrip(" "))
        indents = [
            indent for indent in (hanging, before + STEP) if indent + _columns(line[start:end]) <= width
        ]
        if indents and _columns(line[:start]) > width // 2:
            found[start] = (indents[0], end)
    return found


def _hanging(line: str, width: int) -> int:
    """The column at which a continuation line starts."""
    before = len(line) - len(line.lstrip(" "))
    columns = [_columns(line[: gap.end()]) for gap in GAP.finditer(line, before)]
    fitting = [column for column in columns if width - column >= LEAST_COLUMN]
    hanging = fitting[0] if fitting else before + STEP
    return hanging if width - hanging >= LEAST_COLUMN // 2 else 0


def _columns(text: str) -> int:
    if "\x1b" in text:
        text = COLOUR.sub("", text)
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # rarely needed, and rich is slow to load

    return cell_len(text)
