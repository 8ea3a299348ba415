"""What a prompt shows in frames, read from its text as a person reads it."""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

FRAME = re.compile(
    r"(?P<fence>={5,}) (?P<kind>file|code|test|conventions|outline|reference|signature|candidate)(?: \d+)?: "
    r"(?P<name>.+?)(?: ::)?(?: \(lines (?P<first>\d+)-(?P<last>\d+)\))?(?: \(about \d+ tokens\))?"
)


class FramedItem(Struct, frozen=True, kw_only=True):
    """One item of a context as a prompt shows it."""

    path: str
    symbol: str
    kind: str
    first: int
    """1-based; 0 where the head names no lines."""
    last: int
    at: int
    """1-based line of its head in the prompt."""
    lines: tuple[str, ...]

    @property
    def is_source(self) -> bool:
        """Whether its lines are those of the file."""
        return self.kind in {"file", "code", "test"}


def framed_items(text: str) -> tuple[FramedItem, ...]:
    """The items of the context in a prompt, in order.

    All frames of a prompt have one fence, longer than any that shown text can imitate, and the first one found is real.
    """
    return tuple(_items(text.split("\n")))


def _items(lines: Sequence[str]) -> Iterator[FramedItem]:
    fence = ""
    place = 0
    while place < len(lines):
        head = FRAME.fullmatch(lines[place])
        start = place + 1
        place = start
        if head is None or (fence and head["fence"] != fence):
            continue
        fence = head["fence"]
        while place < len(lines) and lines[place] != f"{fence} end":
            place += 1
        path, _, symbol = head["name"].partition(" :: ")
        yield FramedItem(
            path=path,
            symbol=symbol,
            kind=head["kind"],
            first=int(head["first"] or 0),
            last=int(head["last"] or 0),
            at=start,
            lines=tuple(lines[start:place]),
        )
        place += 1
