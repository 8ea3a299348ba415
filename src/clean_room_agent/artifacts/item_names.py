"""How prompts and reports name a file or a piece of it: `path`, `path :: Class.method`, `path :: name (lines 3-9)`."""

import re
from dataclasses import dataclass

SEPARATOR = " :: "
LINES = re.compile(r" \(lines (\d+)-(\d+)\)")
REMARKS = re.compile(r"(?: \((?:lines \d+-\d+|about \d+ tokens)\))+\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemName:
    """What a name says."""

    path: str
    symbol: str = ""
    """"" for a whole file."""
    lines: tuple[int, int] | None = None
    """First and last, where they are given."""


def item_name(path: str, symbol: str | None = None, lines: tuple[int, int] | None = None) -> str:
    """The name of the file at `path`, or of a symbol or another piece of it."""
    name = f"{path}{SEPARATOR}{symbol}" if symbol else path
    return f"{name} (lines {lines[0]}-{lines[1]})" if lines else name


def parse_item_name(name: str) -> ItemName:
    """What such a name says; remarks in brackets behind it (its lines, its size in tokens) are not part of the symbol."""
    remarks = REMARKS.search(name)
    path, _, symbol = (name[: remarks.start()] if remarks else name).partition(SEPARATOR)
    given = LINES.findall(remarks[0]) if remarks else []
    return ItemName(path=path, symbol=symbol, lines=(int(given[-1][0]), int(given[-1][1])) if given else None)
