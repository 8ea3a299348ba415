"""Finding the search text of an edit in its file: six tiers, and the first that matches at all decides.

    1, 2  exactly, inside the symbols that the context showed; in the file
    3, 4  the same two scopes, with line ends and trailing white space normalised
    5, 6  the same two scopes, also with one constant shift of indentation

Whether once is the caller's question. Nothing is looked for in another file, in another case, or roughly.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

FINDERS_PER_SCOPE = 2
MOST_PLACES = 1_000
"""More are not told apart."""
MOST_LOOKS = 8
"""At lines, for each line that there is: code repeats itself much less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """A constant shift of indentation: `added` goes before each line of the answer, `removed` comes off it."""

    added: str = ""
    removed: str = ""

    def applied(self, text: str) -> str | None:
        """`text` with every line that is not blank shifted; None where a line lacks what is to be removed."""
        lines = text.split("\n")
        if any(line.strip() and not line.startswith(self.removed) for line in lines):
            return None
        return "\n".join(self.added + line[len(self.removed) :] if line.strip() else line for line in lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A place that matched: character offsets in the text searched."""

    start: int
    end: int
    shift: Shift = Shift()


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
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
    """Where `search` stands in `text`, by the first tier that matches.

    `scopes` are the character spans of the symbols that the context showed. `replacement` matters for one case only: a
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
    """Each place where `search` stands character for character, not beginning or ending inside a word.

    A blank line at its beginning or end is one there too, wherever that is so: it tells places apart.
    """
    hits = tuple(
        Hit(start=start, end=start + len(search))
        for start in _occurrences(text, search)
        if not _splits_word(text, start) and not _splits_word(text, start + len(search))
    )
    return tuple(hit for hit in hits if _has_its_blank_lines(text, hit, search)) or hits


def _has_its_blank_lines(text: str, hit: Hit, search: str) -> bool:
    """Whether the line that a line end at either end of `search` leaves empty is empty in the text."""
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
    """Each run of whole lines that is `search` but for trailing white space and one shift of indentation.

    Where the two repeat themselves so much that this would take long, the first places, if there are several, else none.
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
    """How many of the wanted lines, from the first on, stand from line `first` on, shifted."""
    for count, line in enumerate(wanted):
        if shift.applied(line) != lines[first + count].rstrip():
            return count
    return len(wanted)


def line_of(text: str, offset: int) -> int:
    """The 1-based line on which the character at `offset` stands."""
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
    """Whether one line was quoted without its indentation and its replacement counts on a shift of all its lines."""
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
