"""Finds the search text of an edit in its file, and replaces it, keeping line endings and the lines around it.

Of six tiers, the first that matches at all decides:

    1, 2  exactly, inside the symbols that the context showed; in the file
    3, 4  the same two scopes, with line ends and trailing white space normalised
    5, 6  the same two scopes, also with one constant shift of indentation

Example: a file whose second line ends in two blanks (..), and of which the context showed no symbol.

    class Bill:
        def split(self):..
            return self.cents

    `return self.cents`                               2: it occurs exactly
    `    def split(self):` with the line below it      4: except for the blanks
    `def split(self):` and `    return self.cents`     6: four blanks of indentation go before each line of the replacement

Whether it matched exactly once is for the caller to check. Other files are never searched, case always counts, and
there is no approximate matching.
"""

from bisect import bisect_right
from collections.abc import Callable
from math import gcd

from msgspec import Struct

FINDERS_PER_SCOPE = 2
MOST_PLACES = 1_000
"""If there are more, the rest is not looked for."""
MOST_LOOKS = 8
"""Comparisons of lines per line of the file; code repeats itself much less."""


class Shift(Struct, frozen=True, kw_only=True):
    """A constant shift of indentation: `added` goes before each line of the answer, `removed` comes off it."""

    added: str = ""
    removed: str = ""

    def applied(self, text: str) -> str | None:
        """`text` with every line that is not blank shifted; None if a line lacks what is to be removed."""
        lines = text.split("\n")
        if any(line.strip() and not line.startswith(self.removed) for line in lines):
            return None
        return "\n".join(self.added + line[len(self.removed) :] if line.strip() else line for line in lines)


class Hit(Struct, frozen=True, kw_only=True):
    """A place that matched: character offsets in the text searched."""

    start: int
    end: int
    shift: Shift = Shift()


class Match(Struct, frozen=True, kw_only=True):
    """All places of the deciding tier, in order; `tier` is 0 and `hits` empty when nothing matched."""

    tier: int = 0
    hits: tuple[Hit, ...] = ()


def find(
    text: str,
    search: str,
    *,
    replacement: str = "",
    scopes: tuple[tuple[int, int], ...] = (),
    whole_file: bool = True,
) -> Match:
    """Find `search` in `text`, by the first tier that matches.

    `scopes` are the character spans of the symbols that the context showed. `replacement` matters in one case only: a
    line quoted without its indentation, to be replaced by several lines that are not indented either, is not exact.
    """
    if not search.strip():
        return Match()
    finders: tuple[Callable[[str, str], tuple[Hit, ...]], ...] = (find_exact, find_normalised, find_shifted)
    for order, finder in enumerate(finders):
        hits = finder(text, search)
        inside = tuple(
            hit for hit in hits if any(start <= hit.start and hit.end <= end for start, end in scopes)
        )
        chosen = inside or (hits if whole_file else ())
        if (
            finder is not find_shifted
            and len(chosen) == 1
            and _needs_shift(text, chosen[0], search, replacement)
        ):
            continue
        if chosen:
            return Match(tier=order * FINDERS_PER_SCOPE + (1 if inside else 2), hits=chosen)
    return Match()


def find_exact(text: str, search: str) -> tuple[Hit, ...]:
    """Each place where `search` occurs literally, without starting or ending inside a word."""
    hits = tuple(
        Hit(start=start, end=start + len(search))
        for start in _occurrences(text, search)
        if not _splits_word(text, start) and not _splits_word(text, start + len(search))
    )
    return tuple(hit for hit in hits if _has_its_blank_lines(text, hit, search)) or hits


def _has_its_blank_lines(text: str, hit: Hit, search: str) -> bool:
    """Whether a blank line at either end of `search` is blank in the text, too."""
    begins = not search.startswith("\n") or hit.start == 0 or text[hit.start - 1] == "\n"
    ends = not search.endswith("\n") or text.startswith("\n", hit.end) or hit.end == len(text)
    return begins and ends


def find_normalised(text: str, search: str) -> tuple[Hit, ...]:
    """As `find_exact`, with trailing white space and carriage returns taken off each line of both."""
    lines = text.split("\n")
    bare = [line.rstrip() for line in lines]
    starts, bare_starts = _line_starts(lines), _line_starts(bare)
    joined = "\n".join(bare)
    wanted = "\n".join(line.rstrip() for line in search.split("\n"))
    hits = []
    for hit in find_exact(joined, wanted):
        first = bisect_right(bare_starts, hit.start) - 1
        last = bisect_right(bare_starts, hit.end) - 1
        column = hit.end - bare_starts[last]
        end = starts[last] + (column if column < len(bare[last]) else len(lines[last].removesuffix("\r")))
        hits.append(Hit(start=starts[first] + hit.start - bare_starts[first], end=end))
    return tuple(hits)


def find_shifted(text: str, search: str) -> tuple[Hit, ...]:
    """Each run of whole lines that equals `search` except for trailing white space and one shift of indentation. If
    both texts repeat themselves so much that this would take long, the first places if there are several, else none.
    """
    lines = text.split("\n")
    starts = _line_starts(lines)
    wanted = [line.rstrip() for line in search.split("\n")]
    anchor = next(index for index, line in enumerate(wanted) if line)
    body = wanted[anchor].lstrip()
    hits: list[Hit] = []
    left = MOST_LOOKS * (len(lines) + len(wanted))
    for number, line in enumerate(lines):
        first = number - anchor
        if line.strip() != body or first < 0 or first + len(wanted) > len(lines):
            continue
        shift = _shift_between(wanted[anchor], line.rstrip())
        same = 0 if shift is None else _same_lines(lines, first, wanted, shift)
        left -= same + 1
        if left < 0:
            return tuple(hits) if len(hits) > 1 else ()
        if shift is not None and same == len(wanted):
            last = first + len(wanted) - 1
            hits.append(
                Hit(start=starts[first], end=starts[last] + len(lines[last].removesuffix("\r")), shift=shift)
            )
    return tuple(hits)


def _same_lines(lines: list[str], first: int, wanted: list[str], shift: Shift) -> int:
    """How many of the wanted lines, from the first on, match shifted at line `first` and the following ones."""
    for count, line in enumerate(wanted):
        if shift.applied(line) != lines[first + count].rstrip():
            return count
    return len(wanted)


def line_of(text: str, offset: int) -> int:
    """The 1-based line of the character at `offset`."""
    return text.count("\n", 0, offset) + 1


def _shift_between(wanted: str, found: str) -> Shift | None:
    ours = wanted[: len(wanted) - len(wanted.lstrip())]
    theirs = found[: len(found) - len(found.lstrip())]
    if theirs.endswith(ours):
        return Shift(added=theirs.removesuffix(ours))
    if ours.endswith(theirs):
        return Shift(removed=ours.removesuffix(theirs))
    return None


def _needs_shift(text: str, hit: Hit, search: str, replacement: str) -> bool:
    """Whether one line was quoted without its indentation, and its replacement needs a shift of all its lines."""
    before = text[text.rfind("\n", 0, hit.start) + 1 : hit.start]
    if "\n" in search or not before or before.strip():
        return False
    return any(line.strip() and not line.startswith(before) for line in replacement.split("\n")[1:])


def _occurrences(text: str, wanted: str) -> list[int]:
    found: list[int] = []
    position = text.find(wanted)
    while position >= 0 and len(found) < MOST_PLACES:
        found.append(position)
        position = text.find(wanted, position + 1)
    return found


def _splits_word(text: str, offset: int) -> bool:
    return 0 < offset < len(text) and _is_word(text[offset - 1]) and _is_word(text[offset])


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _line_starts(lines: list[str]) -> list[int]:
    starts, offset = [], 0
    for line in lines:
        starts.append(offset)
        offset += len(line) + 1
    return starts


class Splice(Struct, frozen=True, kw_only=True):
    """`text` in place of the characters `start..end`."""

    start: int
    end: int
    text: str

    def applied(self, whole: str) -> str:
        """`whole` with the span replaced."""
        return whole[: self.start] + self.text + whole[self.end :]

    def core(self, whole: str) -> "Splice":
        """The same change without what is equal at both ends: the characters that really change."""
        old = whole[self.start : self.end]
        limit = min(len(old), len(self.text))
        head = 0
        while head < limit and old[head] == self.text[head]:
            head += 1
        tail = 0
        while tail < limit - head and old[-1 - tail] == self.text[-1 - tail]:
            tail += 1
        return Splice(
            start=self.start + head, end=self.end - tail, text=self.text[head : len(self.text) - tail]
        )


def fitted(whole: str, start: int, end: int, text: str) -> Splice:
    """The replacement of a span, with the line endings of its lines; whole lines replaced by nothing are removed."""
    if not text and _is_line_start(whole, start) and _is_line_end(whole, end):
        following = whole.find("\n", end)
        if following >= 0:
            return Splice(start=start, end=following + 1, text="")
        preceding = start - 1 if start else 0
        if preceding and whole[preceding - 1] == "\r":
            preceding -= 1
        return Splice(start=preceding, end=end, text="")
    return Splice(start=start, end=end, text=_with_line_ends(whole, start, end, text))


def reindented(text: str, old: str) -> str:
    """A symbol's new source, moved to the indentation of its old source.

    If only the first line lost its indentation (the others are as deep as the old ones), only that one is moved.
    """
    first, old_first = indentation(text), indentation(old)
    if first == old_first:
        return text
    depth, old_depth = _depth_below(text), _depth_below(old)
    if not first and depth is not None and depth == old_depth and depth >= len(old_first):
        return old_first + text.lstrip("\n")
    if old_first.endswith(first):
        shift = Shift(added=old_first.removesuffix(first))
    elif first.endswith(old_first):
        shift = Shift(removed=first.removesuffix(old_first))
    else:
        return text
    moved = shift.applied(text)
    return text if moved is None else moved


def units_of(file: str, *texts: str) -> tuple[str, ...]:
    """The texts of an answer, indented by the file's unit: tabs for blanks where the file is indented by tabs alone, or the
    reverse. As they are, where either side mixes the two or an indentation is no whole number of units.
    """
    theirs, ours = _indentations(file), [one for text in texts for one in _indentations(text)]
    if not (theirs and ours):
        return texts
    tabs = all(set(one) == {"\t"} for one in theirs) and all(set(one) == {" "} for one in ours)
    blanks = all(set(one) == {" "} for one in theirs) and all(set(one) == {"\t"} for one in ours)
    unit = " " * (gcd(*map(len, ours)) if tabs else min(map(len, theirs)))
    if not (tabs or blanks) or len(unit) == 1:
        return texts
    return tuple(_translated(text, unit, "\t") if tabs else _translated(text, "\t", unit) for text in texts)


def _indentations(text: str) -> list[str]:
    return [
        found
        for line in text.split("\n")
        if line.strip() and (found := line[: len(line) - len(line.lstrip())])
    ]


def _translated(text: str, unit: str, other: str) -> str:
    lines = text.split("\n")
    depths = [(len(line) - len(line.lstrip())) // len(unit) if line.strip() else 0 for line in lines]
    return "\n".join(
        other * depth + line[len(unit) * depth :] for depth, line in zip(depths, lines, strict=True)
    )


def indentation(text: str) -> str:
    """The blanks that begin the first line that is not blank."""
    line = next((line for line in text.split("\n") if line.strip()), "")
    return line[: len(line) - len(line.lstrip())]


def _depth_below(text: str) -> int | None:
    """The least indentation of the lines below the header of a definition, which comes after its decorators."""
    lines = [line for line in text.split("\n") if line.strip()]
    head = next((number for number, line in enumerate(lines) if not line.lstrip().startswith("@")), 0)
    return min((len(line) - len(line.lstrip()) for line in lines[head + 1 :]), default=None)


def _with_line_ends(whole: str, start: int, end: int, text: str) -> str:
    r"""`text` with `\r\n` if every line that the span touches ends with it (files with mixed line endings keep both)."""
    if "\r\n" not in whole or "\n" not in text:
        return text
    last = whole.find("\n", end)
    touched = whole[start : last + 1 if last >= 0 else len(whole)]
    if "\n" not in touched or touched.count("\r\n") != touched.count("\n"):
        return text
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _is_line_start(whole: str, offset: int) -> bool:
    return offset == 0 or whole[offset - 1] == "\n"


def _is_line_end(whole: str, offset: int) -> bool:
    return offset == len(whole) or whole[offset] == "\n" or whole.startswith("\r\n", offset)
