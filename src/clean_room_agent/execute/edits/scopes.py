"""Where the symbols that a context shows stand in their files as these are now."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from clean_room_agent.artifacts.context import ContextItem


class Named(Protocol):
    """What has a qualified name."""

    @property
    def symbol(self) -> str:
        """`Class.method`, or `function`."""


NamedT = TypeVar("NamedT", bound=Named)


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolSpan:
    """Where a shown symbol stands: character offsets of its first and behind its last character."""

    symbol: str
    start: int
    end: int


def symbol_spans(items: Iterable[ContextItem], text: str) -> tuple[SymbolSpan, ...]:
    """The spans in `text` of those items that are symbols, in order of place.

    A symbol whose text no longer stands at its lines is looked for in the file; it has no span if it does not stand
    there exactly once.
    """
    lines = text.split("\n")
    bare = [line.removesuffix("\r") for line in lines]
    joined = "\n".join(bare)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    spans = []
    for item in items:
        if item.symbol is None or not item.text.strip():
            continue
        shown = item.text.removesuffix("\n").split("\n")
        first = item.start_line - 1
        if bare[first : first + len(shown)] != shown:
            first = only_row(joined, shown)
        if first >= 0:
            last = first + len(shown) - 1
            spans.append(
                SymbolSpan(symbol=item.symbol, start=starts[first], end=starts[last] + len(bare[last]))
            )
    return tuple(sorted(spans, key=lambda span: (span.start, -span.end, span.symbol)))


def only_row(text: str, lines: list[str]) -> int:
    """The 0-based row at which `lines` stand in `text`; -1 where they do not, or more than once."""
    framed, wanted = f"\n{text}\n", "\n".join(("", *lines, ""))
    place = framed.find(wanted)
    if place < 0 or framed.find(wanted, place + 1) >= 0:
        return -1
    return framed.count("\n", 0, place)


def moved(
    spans: tuple[SymbolSpan, ...], quoted: tuple[int, int], changed: tuple[int, int], length: int
) -> tuple[SymbolSpan, ...]:
    """The spans after the characters `changed`, which lie in `quoted`, became `length` characters.

    A span that holds all of `quoted` grows or shrinks with it; one that `changed` cuts into is gone.
    """
    start, end = changed
    delta = length - (end - start)
    kept = []
    for span in spans:
        if span.start <= quoted[0] and quoted[1] <= span.end:
            kept.append(replace(span, end=span.end + delta))
        elif span.end <= start:
            kept.append(span)
        elif span.start >= end:
            kept.append(replace(span, start=span.start + delta, end=span.end + delta))
        elif span.start <= start and end <= span.end:
            kept.append(replace(span, end=span.end + delta))
    return tuple(kept)


def shown_ranges(spans: tuple[SymbolSpan, ...], text: str) -> tuple[tuple[int, int], ...]:
    """The character ranges of `spans`; those with nothing but blanks between them are one."""
    ranges: list[tuple[int, int]] = []
    for span in sorted(spans, key=lambda span: span.start):
        if ranges and not text[ranges[-1][1] : span.start].strip():
            ranges[-1] = (ranges[-1][0], max(ranges[-1][1], span.end))
        else:
            ranges.append((span.start, span.end))
    return tuple(ranges)


def named(known: tuple[NamedT, ...], symbol: str) -> tuple[NamedT, ...]:
    """Those of `symbol`: by its qualified name, else by a qualified name that ends in it."""
    exact = tuple(one for one in known if one.symbol == symbol)
    return exact or tuple(one for one in known if one.symbol.endswith(f".{symbol}"))
