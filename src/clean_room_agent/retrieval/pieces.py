"""Divides a file into pieces that can be shown separately, and a piece that is too large at the boundaries of its
parts.

Every line that is not blank belongs to exactly one piece, so that any line that has to be edited can be selected.
An example, in which a definition of more than 4 lines is divided into its members:

     1  import os                       (imports)
     2
     3  LIMIT = 3                       (lines 3-3)
     4
     5  # Adds two amounts.             add (comment)
     6  def add(a, b):                  add
     7      return a + b
     8
     9
    10  class Cart:                     Cart (head)
    11      '''Holds items.'''
    12
    13      def total(self):            Cart.total
    14          return 0
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

PieceKind = Literal["symbol", "head", "part", "imports", "comment", "code"]
CONTAINER_LINES = 60
"""A class up to this long is one piece; a longer one is its head, its members and what is between them."""
CODE_LINES = 80
"""Code outside of definitions is split at blank lines into pieces of about this length."""
IMPORTS_GAP = 5
"""Imports with no more lines between them are shown as one piece."""
LONG_VALUE_LINES = 8
"""A variable or type alias that is shorter belongs to the code around it."""
OTHER_KINDS: frozenset[PieceKind] = frozenset({"imports", "comment", "code"})
"""Kinds of pieces that are not definitions."""
COMMENTS = ("#", "//", "/*", "*")
"""How the lines of a comment begin."""
VALUES = frozenset({"variable", "type_alias"})
CONTAINERS = frozenset({"class", "interface", "enum"})
Cut = tuple[int, int]
"""A line (1-based) before which a text may be cut, and its depth: at the least depth it is cut first."""
RANGE = re.compile(r"\(header\)$|\(lines \d+-\d+\)$| \(head\)$")


class IndexedDefinition(Struct, frozen=True, kw_only=True):
    """A symbol of the index, with what dividing its file needs."""

    symbol_id: int
    name: str
    """Qualified: `Class.method`."""
    kind: str
    start_line: int
    """1-based, inclusive, decorators included."""
    end_line: int
    signature: str
    doc: str = ""
    """Its documentation, without quotes or comment marks."""


class CodePiece(Struct, frozen=True, kw_only=True):
    """Some whole lines of a file."""

    name: str
    """The definition's qualified name; `Class (head)`; `name (lines a-b)` for a part of one that is too large for a
    prompt; `Class.method (comment)` for the comment right above a definition; `(imports)`, `(header)`, or `(lines a-b)`
    for other code.
    """
    kind: PieceKind
    start_line: int
    """1-based, inclusive."""
    end_line: int
    signature: str
    """The definition's; for other pieces their first line that is not blank."""
    doc: str = ""
    notes: tuple[str, ...] = ()
    """Comments in it that state a reason, each with its line number."""


def split_file(
    lines: Sequence[str],
    definitions: Iterable[IndexedDefinition],
    *,
    max_lines: int,
    imports: Sequence[tuple[int, int]] = (),
) -> tuple[CodePiece, ...]:
    """Divide the file into pieces, by line. Consecutive overloads of one name form one piece, and a definition of more than
    `max_lines` that has members is divided, whatever its kind. `imports` are first and last lines, in order.
    """
    ordered = sorted(
        (entry for entry in definitions if _stands_alone(entry) and entry.end_line <= len(lines)),
        key=lambda entry: (entry.start_line, -entry.end_line, entry.kind == "variable", entry.name),
    )
    pieces = _split_lines(lines, ordered, 1, len(lines), owner="", max_lines=max_lines)
    return tuple(_with_imports(_with_overloads(pieces), lines, imports))


def enclosing_head(pieces: Iterable[CodePiece], piece: CodePiece) -> CodePiece | None:
    """The head of the class that `piece` is a member of, if that class was divided."""
    owner = definition_name(piece).rpartition(".")[0] if piece.kind in {"symbol", "part"} else ""
    heads = {entry.name: entry for entry in pieces if entry.kind == "head"}
    return heads.get(head_name(owner)) if owner else None


def definition_name(piece: CodePiece) -> str:
    """The qualified name of the definition that the piece is, begins or is a part of; "" for other code."""
    if piece.kind in OTHER_KINDS:
        return ""
    if piece.kind == "part":
        return piece.name.rpartition(" (lines ")[0]
    return piece.name.removesuffix(" (head)")


def head_name(owner: str) -> str:
    """The name of the head of the class `owner`."""
    return f"{owner} (head)"


def _with_overloads(pieces: Iterable[CodePiece]) -> list[CodePiece]:
    joined: list[CodePiece] = []
    for piece in pieces:
        before = joined[-1] if joined else None
        if before is not None and before.kind == piece.kind == "symbol" and before.name == piece.name:
            joined[-1] = replace(
                before, end_line=piece.end_line, signature=piece.signature, doc=piece.doc or before.doc
            )
        else:
            joined.append(piece)
    return joined


def _with_imports(
    pieces: Iterable[CodePiece], lines: Sequence[str], imports: Sequence[tuple[int, int]]
) -> Iterator[CodePiece]:
    """Make imports inside other code pieces of their own."""
    for piece in pieces:
        inside = [span for span in imports if piece.start_line <= span[0] and span[1] <= piece.end_line]
        if piece.kind != "code" or not inside:
            yield piece
            continue
        line = piece.start_line
        for first, last in joined_spans(inside, gap=IMPORTS_GAP):
            yield from _code_pieces(lines, line, first - 1)
            yield CodePiece(
                name="(imports)",
                kind="imports",
                start_line=first,
                end_line=last,
                signature=lines[first - 1].strip(),
            )
            line = last + 1
        yield from _code_pieces(lines, line, piece.end_line)


def joined_spans(spans: Iterable[tuple[int, int]], *, gap: int) -> list[tuple[int, int]]:
    """The spans of lines in order, where each begins at most `gap` lines after the end of the one before as one."""
    joined: list[tuple[int, int]] = []
    for first, last in spans:
        if joined and first - joined[-1][1] <= gap:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined


def _stands_alone(entry: IndexedDefinition) -> bool:
    return entry.kind not in VALUES or entry.end_line - entry.start_line + 1 >= LONG_VALUE_LINES


def _split_lines(
    lines: Sequence[str],
    ordered: Sequence[IndexedDefinition],
    first: int,
    last: int,
    *,
    owner: str,
    max_lines: int,
) -> list[CodePiece]:
    pieces: list[CodePiece] = []
    line = first
    index = 0
    while index < len(ordered):
        entry = ordered[index]
        index += 1
        inside = []
        while index < len(ordered) and ordered[index].start_line <= entry.end_line:
            if ordered[index].end_line <= entry.end_line:
                inside.append(ordered[index])
            index += 1
        if entry.start_line < line or entry.end_line > last:
            continue
        pieces.extend(
            _split_off_comment(lines, _code_pieces(lines, line, entry.start_line - 1, owner=owner), entry)
        )
        pieces.extend(_definition_pieces(lines, entry, inside, max_lines=max_lines))
        line = entry.end_line + 1
    pieces.extend(_code_pieces(lines, line, last, owner=owner))
    return pieces


def _definition_pieces(
    lines: Sequence[str], entry: IndexedDefinition, inside: Sequence[IndexedDefinition], *, max_lines: int
) -> list[CodePiece]:
    length = entry.end_line - entry.start_line + 1
    members = [
        member
        for member in inside
        if (member.start_line, member.end_line) != (entry.start_line, entry.end_line)
    ]
    divided = members and (length > max_lines or (entry.kind in CONTAINERS and length > CONTAINER_LINES))
    if not divided:
        whole = CodePiece(
            name=entry.name, kind="symbol", start_line=entry.start_line, end_line=entry.end_line,
            signature=entry.signature, doc=entry.doc,
        )  # fmt: skip
        return [whole]
    body = members[0].start_line
    pieces = []
    if body > entry.start_line:
        head = CodePiece(
            name=head_name(entry.name), kind="head", start_line=entry.start_line,
            end_line=_last_text_line(lines, entry.start_line, body - 1), signature=entry.signature, doc=entry.doc,
        )  # fmt: skip
        pieces.append(head)
    return pieces + _split_lines(lines, members, body, entry.end_line, owner=entry.name, max_lines=max_lines)


def _code_pieces(lines: Sequence[str], first: int, last: int, *, owner: str = "") -> list[CodePiece]:
    """The lines between definitions, cut at blank lines; nothing if all are blank."""
    bounds = [first]
    for number in range(first, last):
        if number - bounds[-1] >= CODE_LINES and not lines[number - 1].strip():
            bounds.append(number + 1)
    bounds.append(last + 1)
    pieces = []
    for start, stop in pairwise(bounds):
        begin = next((number for number in range(start, stop) if lines[number - 1].strip()), None)
        if begin is None:
            continue
        end = _last_text_line(lines, begin, stop - 1)
        name = f"(lines {begin}-{end})" if owner or start > 1 else "(header)"
        label = f"{owner} {name}" if owner else name
        signature = lines[begin - 1].strip()
        pieces.append(CodePiece(name=label, kind="code", start_line=begin, end_line=end, signature=signature))
    return pieces


def _split_off_comment(
    lines: Sequence[str], pieces: list[CodePiece], entry: IndexedDefinition
) -> list[CodePiece]:
    """The code before a definition, with the comment right above it as a piece of its own."""
    last = pieces[-1] if pieces else None
    if last is None or last.end_line != entry.start_line - 1:
        return pieces
    first = entry.start_line
    while first > last.start_line and lines[first - 2].lstrip().startswith(COMMENTS):
        first -= 1
    if first == entry.start_line:
        return pieces
    comment = CodePiece(
        name=f"{entry.name} (comment)",
        kind="comment",
        start_line=first,
        end_line=last.end_line,
        signature=lines[first - 1].strip(),
    )
    if first == last.start_line:
        return [*pieces[:-1], comment]
    end = _last_text_line(lines, last.start_line, first - 1)
    name = last.name.replace(f"-{last.end_line})", f"-{end})")
    return [*pieces[:-1], replace(last, name=name, end_line=end), comment]


def _last_text_line(lines: Sequence[str], first: int, last: int) -> int:
    return next((number for number in range(last, first - 1, -1) if lines[number - 1].strip()), first)


def divide_large(
    pieces: Iterable[CodePiece],
    lines: Sequence[str],
    *,
    count: Callable[[str], int],
    most: int,
    part: int,
    cuts: Callable[[], Sequence[Cut]],
) -> tuple[CodePiece, ...]:
    """Replace each piece of more than `most` tokens by parts of at most `part`, if the cuts allow it.

    A single statement that is larger stays in one part. `cuts` is called only if a piece is too large.
    """
    divided: list[CodePiece] = []
    known: Sequence[Cut] | None = None
    for piece in pieces:
        text = lines[piece.start_line - 1 : piece.end_line]
        # A text never has more tokens than characters, and counting tokens is slow.
        if sum(map(len, text)) + len(text) <= most or count("\n".join(text)) <= most:
            divided.append(piece)
            continue
        known = cuts() if known is None else known
        sums = list(accumulate((count(f"{line}\n") for line in text), initial=0))
        spans = _Division(piece.start_line, sums, part).spans(piece.end_line, known)
        divided.extend(_piece_parts(piece, spans, lines))
    return tuple(divided)


def text_cuts(lines: Sequence[str]) -> tuple[Cut, ...]:
    """Cuts for a text without a grammar: preferably after blank lines, then before the least indented lines."""
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
        """The spans up to line `last`; neighbours that fit together are merged."""
        joined: list[tuple[int, int]] = []
        for start, end in self._divide_span(self._first, last, cuts):
            if joined and self._fits_part(joined[-1][0], end):
                joined[-1] = (joined[-1][0], end)
            else:
                joined.append((start, end))
        return joined

    def _divide_span(self, start: int, end: int, cuts: Sequence[Cut]) -> list[tuple[int, int]]:
        inner = [cut for cut in cuts if start < cut[0] <= end]
        if self._fits_part(start, end) or not inner:
            return [(start, end)]
        top = min(depth for _, depth in inner)
        deeper = [cut for cut in inner if cut[1] > top]
        bounds = [line for line, depth in inner if depth == top]
        spans: list[tuple[int, int]] = []
        begin = start
        for bound, following in zip(bounds, [*bounds[1:], end + 1], strict=True):
            if not self._fits_part(begin, following - 1):
                spans.extend(self._divide_span(begin, bound - 1, deeper))
                begin = bound
        return [*spans, *self._divide_span(begin, end, deeper)]

    def _fits_part(self, start: int, end: int) -> bool:
        return self._sums[end - self._first + 1] - self._sums[start - self._first] <= self._part


def _piece_parts(piece: CodePiece, spans: Sequence[tuple[int, int]], lines: Sequence[str]) -> list[CodePiece]:
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
