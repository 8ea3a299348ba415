"""The lines of a file that speak for it: those that hold most of what a task asks for."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from clean_room_agent.indexer.terms import count_terms

MOST_CHARS = 160
"""Of a line, as it is quoted."""


def nearest_lines(
    lines: Sequence[str], terms: Mapping[str, float], *, most: int, first: int = 1
) -> tuple[tuple[int, str], ...]:
    """Number and text of up to `most` lines that hold wanted terms, in the order of the file.

    The rarer a term is among the lines, the more it counts; of equal lines the first. `first` is the number of the
    first line given.
    """
    bags = [frozenset(count_terms(line)) & terms.keys() for line in lines]
    held = Counter(term for bag in bags for term in bag)
    weights = {term: terms[term] / math.log(2 + count) for term, count in held.items()}
    scores = [sum(weights[term] for term in sorted(bag)) for bag in bags]
    best = sorted(
        (place for place, score in enumerate(scores) if score > 0), key=lambda at: (-scores[at], at)
    )
    return tuple((first + place, quoted(lines[place])) for place in sorted(best[:most]))


def quoted(line: str) -> str:
    """The line without the white space around it, cut where it is very long."""
    text = line.strip()
    return text if len(text) <= MOST_CHARS else f"{text[:MOST_CHARS]} [cut]"


def numbered(lines: Sequence[tuple[int, str]]) -> str:
    """Each line after its number."""
    return "".join(f"{number}: {text}\n" for number, text in lines)
