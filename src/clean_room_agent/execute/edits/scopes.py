"""The spans of the symbols that a room shows, in the texts as they are now."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from clean_room_agent.artifacts.package import ContextItem


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
    spans = []
    for item in items:
        if item.symbol is None:
            continue
        shown = item.text.removesuffix("\n")
        start = sum(len(line) + 1 for line in lines[: item.start_line - 1])
        if not text.startswith(shown, start) or not shown:
            start = text.find(shown) if shown and text.count(shown) == 1 else -1
        if start >= 0:
            spans.append(SymbolSpan(symbol=item.symbol, start=start, end=start + len(shown)))
    return tuple(sorted(spans, key=lambda span: (span.start, -span.end, span.symbol)))


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


def named(spans: tuple[SymbolSpan, ...], symbol: str) -> tuple[SymbolSpan, ...]:
    """The spans of `symbol`: by its qualified name, else by a qualified name that ends in it."""
    exact = tuple(span for span in spans if span.symbol == symbol)
    return exact or tuple(span for span in spans if span.symbol.endswith(f".{symbol}"))
