"""Splits a piece that is too large for a context at the boundaries of its statements, members or elements."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import accumulate

from clean_room_agent.retrieval.code.pieces import Piece

Cut = tuple[int, int]
"""A line (1-based) before which a text may be cut, and its depth: at the least depth it is cut first."""

RANGE = re.compile(r"\(header\)$|\(lines \d+-\d+\)$| \(head\)$")


def divide_large(
    pieces: Iterable[Piece],
    lines: Sequence[str],
    *,
    count: Callable[[str], int],
    most: int,
    part: int,
    cuts: Callable[[], Sequence[Cut]],
) -> tuple[Piece, ...]:
    """The pieces; one of more than `most` tokens is replaced by parts of at most `part`, where the cuts allow it.

    A single statement that is larger stays whole. `cuts` is called only if a piece is too large.
    """
    divided: list[Piece] = []
    known: Sequence[Cut] | None = None
    for piece in pieces:
        text = lines[piece.start_line - 1 : piece.end_line]
        # No text has more tokens than characters, and counting takes time.
        if sum(map(len, text)) + len(text) <= most or count("\n".join(text)) <= most:
            divided.append(piece)
            continue
        known = cuts() if known is None else known
        sums = list(accumulate((count(f"{line}\n") for line in text), initial=0))
        spans = _Division(piece.start_line, sums, part).spans(piece.end_line, known)
        divided.extend(_parts(piece, spans, lines))
    return tuple(divided)


def text_cuts(lines: Sequence[str]) -> tuple[Cut, ...]:
    """Cuts for a text without a grammar: after blank lines first, then before the least indented lines."""
    cuts = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            after_blank = number > 1 and not lines[number - 2].strip()
            cuts.append((number, 0 if after_blank else 1 + len(line) - len(line.lstrip())))
    return tuple(cuts)


class _Division:
    """Divides one piece into spans of at most `part` tokens; `sums[n]` is the number of tokens of its first `n` lines."""

    def __init__(self, first: int, sums: Sequence[int], part: int) -> None:
        self._first = first
        self._sums = sums
        self._part = part

    def spans(self, last: int, cuts: Sequence[Cut]) -> list[tuple[int, int]]:
        """The spans up to line `last`; neighbours that fit together are one span."""
        joined: list[tuple[int, int]] = []
        for start, end in self._divide(self._first, last, cuts):
            if joined and self._fits(joined[-1][0], end):
                joined[-1] = (joined[-1][0], end)
            else:
                joined.append((start, end))
        return joined

    def _divide(self, start: int, end: int, cuts: Sequence[Cut]) -> list[tuple[int, int]]:
        inner = [cut for cut in cuts if start < cut[0] <= end]
        if self._fits(start, end) or not inner:
            return [(start, end)]
        top = min(depth for _, depth in inner)
        deeper = [cut for cut in inner if cut[1] > top]
        bounds = [line for line, depth in inner if depth == top]
        spans: list[tuple[int, int]] = []
        begin = start
        for bound, following in zip(bounds, [*bounds[1:], end + 1], strict=True):
            if not self._fits(begin, following - 1):
                spans.extend(self._divide(begin, bound - 1, deeper))
                begin = bound
        return [*spans, *self._divide(begin, end, deeper)]

    def _fits(self, start: int, end: int) -> bool:
        return self._sums[end - self._first + 1] - self._sums[start - self._first] <= self._part


def _parts(piece: Piece, spans: Sequence[tuple[int, int]], lines: Sequence[str]) -> list[Piece]:
    if len(spans) == 1:
        return [piece]
    owner = RANGE.sub("", piece.name).strip()
    parts = []
    for number, (start, end) in enumerate(spans):
        while end > start and not lines[end - 1].strip():
            end -= 1  # noqa: PLW2901 - the blank lines at its end belong to no part
        place = f"(lines {start}-{end})"
        part = replace(
            piece,
            name=f"{owner} {place}" if owner else place,
            kind="code" if piece.kind == "code" else "part",
            start_line=start,
            end_line=end,
        )
        if number:
            part = replace(part, signature=lines[start - 1].strip(), doc="")
        elif piece.kind == "head" or piece.name == "(header)":
            part = replace(part, name=piece.name, kind=piece.kind)
        parts.append(part)
    return parts
