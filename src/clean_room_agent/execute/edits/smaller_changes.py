"""A change of one line, made with only some of its parts: what the others do may not be needed.

Small models write a line anew where a word of it is wrong. Which part of a change matters is found by leaving parts out
(delta debugging, Zeller and Hildebrandt 2002, doi 10.1109/32.988498); here a line has few, so that all ways are tried.

    (a,) if n == 10 else (text(a), a)     was
    (str(a), n)                           answered: two parts are changed
    (a,) if n == 10 else (text(a), n)     the last part alone
"""

import difflib
import itertools
import re
from collections.abc import Sequence

from clean_room_agent.execute.edits.static_checks import is_same_code, static_fault

TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
MOST_PARTS = 5
MOST_WAYS = 12


def smaller_changes(path: str, symbol: str, before: str, after: str) -> list[str]:
    """The file's texts with a part of the change, fewest tokens first; none if it changes more than one line, or has one part.

    Each passes the static checks, defines `symbol`, and is neither of the two.
    """
    old, new = before.split("\n"), after.split("\n")
    changed = [at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other]
    if len(old) != len(new) or len(changed) != 1:
        return []
    (at,) = changed
    texts = ("\n".join((*old[:at], line, *old[at + 1 :])) for line in _partly_changed_lines(old[at], new[at]))
    good = (
        text
        for text in dict.fromkeys(texts)
        if not is_same_code(path, before, text)
        and not is_same_code(path, after, text)
        and not static_fault(path, symbol, before, text)
    )
    return list(itertools.islice(good, MOST_WAYS))


def _partly_changed_lines(old: str, new: str) -> list[str]:
    """The old line with some of what is changed in it."""
    before, after = TOKEN.findall(old), TOKEN.findall(new)
    codes = difflib.SequenceMatcher(a=before, b=after, autojunk=False).get_opcodes()
    parts = [number for number, code in enumerate(codes) if code[0] != "equal"]
    if len(parts) > MOST_PARTS:
        return []
    sizes = {number: sum(_opcode_lengths(codes[number])) for number in parts}
    some = [chosen for count in range(1, len(parts)) for chosen in itertools.combinations(parts, count)]
    some.sort(key=lambda chosen: sum(sizes[number] for number in chosen))
    return [_apply_opcodes(before, after, codes, chosen) for chosen in some]


def _opcode_lengths(code: tuple[str, int, int, int, int]) -> tuple[int, int]:
    _, start, end, new_start, new_end = code
    return end - start, new_end - new_start


def _apply_opcodes(
    before: Sequence[str],
    after: Sequence[str],
    codes: Sequence[tuple[str, int, int, int, int]],
    chosen: Sequence[int],
) -> str:
    pieces: list[str] = []
    for number, (_, start, end, new_start, new_end) in enumerate(codes):
        pieces += after[new_start:new_end] if number in chosen else before[start:end]
    return "".join(pieces)
