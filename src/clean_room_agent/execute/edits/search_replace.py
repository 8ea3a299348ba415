"""Finds the search text of an edit in its file, and replaces it, keeping line endings and the lines around it.

Of eight tiers, the first that matches at all decides:

    1, 2  exactly, inside the symbols that the context showed; in the file
    3, 4  the same two scopes, with line ends and trailing white space normalised
    5, 6  the same two scopes, also with one constant shift of indentation
    7, 8  as all of these, with characters that look alike taken for the same: typographic quotes and dashes, kinds of blanks,
          composed and decomposed letters, what cannot be seen

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

import difflib
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Sized
from itertools import accumulate, zip_longest

from msgspec import Struct

FINDERS_PER_SCOPE = 2
MOST_COMPARED = 4_000_000
"""Pairs of characters of two lines."""
LOOK_ALIKE_TIER = 7
"""The first tier that takes look-alikes for the same."""
LOOK_ALIKES = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u2035\u00b4\u02b9\u02bc\u02ca\u02cb\uff07", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u2036\u02ba\uff02", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-"),
    **dict.fromkeys("\u301c\u223c\uff5e", "~"),
    **dict.fromkeys("\u00a0\u202f\u205f\u3000", " "),
    **dict.fromkeys(map(chr, range(0x2000, 0x200B)), " "),
    **dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufe0e\ufe0f\ufeff", ""),
}
"""Of characters that cannot be told from another one, that one; of those that cannot be seen, nothing."""
SAME_LETTERS = ("<compat>", "<wide>", "<narrow>")
"""How Unicode marks what is other characters in another form: three dots in one, a ligature, letters of full width."""
MOST_PLACES = 1_000
"""If there are more, the rest is not looked for."""
MOST_LOOKS = 8
"""Comparisons of lines per line of the file; code repeats itself much less."""


class Shift(Struct, frozen=True, kw_only=True):
    """A constant shift of indentation: `added` goes before each line of the answer, `removed` comes off it."""

    added: str = ""
    removed: str = ""

    def applied(self, text: str, *, fixed: Collection[int] = ()) -> str | None:
        """`text` with every line that is not blank shifted, but for the rows that are `fixed`; None if a line lacks what is
        to be removed.
        """
        lines = text.split("\n")
        shifted = [number for number, line in enumerate(lines) if line.strip() and number not in fixed]
        for number in shifted:
            if not lines[number].startswith(self.removed):
                return None
            lines[number] = self.added + lines[number][len(self.removed) :]
        return "\n".join(lines)


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
    finders: tuple[Callable[[str, str], tuple[Hit, ...]], ...] = (
        find_exact,
        find_normalised,
        find_shifted,
        find_look_alikes,
    )
    for order, finder in enumerate(finders):
        hits = finder(text, search)
        inside = tuple(
            hit for hit in hits if any(start <= hit.start and hit.end <= end for start, end in scopes)
        )
        chosen = inside or (hits if whole_file else ())
        if (
            finder in {find_exact, find_normalised}
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
    starts, bare_starts = line_starts(lines), line_starts(bare)
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
    starts = line_starts(lines)
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


def _look_alike(character: str) -> str:
    if character in LOOK_ALIKES:
        return LOOK_ALIKES[character]
    if unicodedata.category(character) == "Cf":  # it cannot be seen
        return ""
    form = "NFKD" if unicodedata.decomposition(character).startswith(SAME_LETTERS) else "NFD"
    return unicodedata.normalize(form, character)  # type: ignore[arg-type]


class _Folded:
    """A text in which look-alikes are the same characters, and the way back to its own ones."""

    def __init__(self, text: str) -> None:
        self.own = text
        pieces = [character if character.isascii() else _look_alike(character) for character in text]
        self.text = "".join(pieces)
        self.starts = list(accumulate(map(len, pieces), initial=0))
        """Where each character of the own text begins in the folded one, and its end."""

    def back(self, offset: int, *, last: bool = False) -> int | None:
        """The offset in the own text, the first or last one that it can be; None within one of its characters."""
        at = bisect_right(self.starts, offset) - 1 if last else bisect_left(self.starts, offset)
        return at if self.starts[at] == offset else None


def find_look_alikes(text: str, search: str) -> tuple[Hit, ...]:
    """As the first of the other finders that finds something, with characters that look alike taken for the same."""
    if text.isascii() and search.isascii():
        return ()
    folded, wanted = _Folded(text), _Folded(search).text
    if (folded.text == text and wanted == search) or not wanted.strip():
        return ()
    for finder in (find_exact, find_normalised, find_shifted):
        hits = []
        for hit in finder(folded.text, wanted):
            start, end = folded.back(hit.start), folded.back(hit.end, last=True)
            if start is not None and end is not None:
                hits.append(Hit(start=start, end=end, shift=hit.shift))
        if hits:
            return tuple(hits)
    return ()


def with_own_characters(old: str, search: str, replacement: str) -> str:
    """The replacement of `old`, which looks like `search`, with the characters of `old` in all that it leaves as it is."""
    theirs, ours, new = (text.split("\n") for text in (search, old, replacement))
    pairs = dict(enumerate(zip_longest(theirs, ours, fillvalue="")))
    made = []
    for kind, first, last, start, end in difflib.SequenceMatcher(
        a=theirs, b=new, autojunk=False
    ).get_opcodes():
        for number in range(start, end):
            at = first + number - start
            line, same = new[number], pairs.get(at) if kind != "insert" and at < last else None
            body = line.strip()
            own = body if same is None else _own_in_line(same[1].strip(), same[0].strip(), body)
            made.append(line.replace(body, own, 1) if body else line)
    return "\n".join(made)


def _own_in_line(old: str, search: str, new: str) -> str:
    ours, theirs = _Folded(old), _Folded(search)
    if ours.text != theirs.text or len(search) * len(new) > MOST_COMPARED:
        return new
    made, done = "", 0
    for block in difflib.SequenceMatcher(a=search, b=new, autojunk=False).get_matching_blocks():
        start = ours.back(theirs.starts[block.a])
        end = ours.back(theirs.starts[block.a + block.size], last=True)
        kept = new[block.b : block.b + block.size] if start is None or end is None else old[start:end]
        made += new[done : block.b] + (kept if block.size else "")
        done = block.b + block.size
    return made


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
    return character.isalnum() or character == "_" or unicodedata.combining(character) > 0


def line_starts(lines: Iterable[Sized]) -> list[int]:
    """Where each line of a text begins, and behind them where another one would."""
    return list(accumulate((len(line) + 1 for line in lines), initial=0))


def filled_lines(text: str) -> list[str]:
    """The lines without blank ones before and after them."""
    lines = text.replace("\r\n", "\n").split("\n")
    filled = [number for number, line in enumerate(lines) if line.strip()]
    return lines[filled[0] : filled[-1] + 1] if filled else []


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


def reindented(text: str, old: str, *, fixed: Collection[int] = ()) -> str:
    """A symbol's new source, moved to the indentation of its old source, but for the rows that are `fixed`.

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
    moved = shift.applied(text, fixed=fixed)
    return text if moved is None else moved


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
