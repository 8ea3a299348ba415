"""The text of a file that is most like a search text that was not found in it: for feedback, never for matching."""

import difflib
import re
from collections import Counter
from dataclasses import dataclass

MAX_LINES = 30
MAX_FILE_LINES = 20_000
MAX_COMPARED_WORDS = 600
MAX_CLOSE_LINES = 2_000
CANDIDATES = 5
MIN_RATIO = 0.4
WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """A run of real lines."""

    line: int
    """1-based, of the first line."""
    text: str
    """Verbatim, at most 30 lines."""
    differing_line: int
    """1-based line of the file where the two first differ; 0 where they differ in white space only."""
    expected: str
    """What the search text has there."""


def nearest(text: str, search: str) -> Nearest | None:
    """The run of lines most like `search`; None where nothing is like it.

    The work is bounded: windows are chosen by the lines that they share with `search`, and only the best few are
    compared word by word.
    """
    lines = text.split("\n")[:MAX_FILE_LINES]
    wanted = search.strip("\n").split("\n")[:MAX_LINES]
    size = min(len(wanted), len(lines))
    best, best_ratio = -1, MIN_RATIO
    words = _words(wanted)
    for start in _candidates(lines, wanted, size):
        ratio = difflib.SequenceMatcher(
            a=_words(lines[start : start + size]), b=words, autojunk=False
        ).ratio()
        if ratio > best_ratio:
            best, best_ratio = start, ratio
    if best < 0:
        return None
    window_lines = lines[best : best + size]
    differing = next(
        (
            index
            for index in range(len(wanted))
            if index >= size or wanted[index].rstrip() != window_lines[index].rstrip()
        ),
        None,
    )
    return Nearest(
        line=best + 1,
        text="\n".join(window_lines),
        differing_line=0 if differing is None else best + 1 + min(differing, size - 1),
        expected="" if differing is None else wanted[differing],
    )


def _candidates(lines: list[str], wanted: list[str], size: int) -> list[int]:
    """Starts of the windows that share most lines with `wanted`, best first, then the earliest."""
    bare = [line.strip() for line in lines]
    weights = Counter({line.strip(): 1 for line in wanted if line.strip()})
    shared = [weights[line] for line in bare]
    if not any(shared):
        return _by_close_line(bare, wanted, size)
    score = sum(shared[:size])
    scores = [score]
    for start in range(1, len(lines) - size + 1):
        score += shared[start + size - 1] - shared[start - 1]
        scores.append(score)
    aligned = [_aligned(bare, wanted, start) for start in range(len(scores))]
    order = sorted(range(len(scores)), key=lambda start: (-scores[start], -aligned[start], start))
    return order[:CANDIDATES]


def _words(lines: list[str]) -> list[str]:
    return WORD.findall("\n".join(lines))[:MAX_COMPARED_WORDS]


def _aligned(bare: list[str], wanted: list[str], start: int) -> bool:
    return bare[start] == wanted[0].strip()


def _by_close_line(bare: list[str], wanted: list[str], size: int) -> list[int]:
    """Where no line is shared: windows around the lines most like the longest line wanted."""
    anchor = max(range(len(wanted)), key=lambda index: len(wanted[index].strip()))
    places: dict[str, int] = {}
    for number, line in enumerate(bare):
        places.setdefault(line[:200], number)
    close = difflib.get_close_matches(
        wanted[anchor].strip()[:200], sorted(places, key=places.__getitem__)[:MAX_CLOSE_LINES], n=CANDIDATES
    )
    last = max(len(bare) - size, 0)
    return [min(max(places[line] - anchor, 0), last) for line in close]
