"""A task's words as weighted search terms."""

import math
from collections import defaultdict

from clean_room_agent.indexer.terms import MAX_WORD, WORD, count_terms, parts_of, terms_of

FIRST_LINE_WEIGHT = 2.0
COMPOUND_WEIGHT = 2.0


def query_terms(text: str) -> dict[str, float]:
    """Each term of `text` with its weight, by term.

    A term weighs 2 for standing in the first line, and 1 + ln(n) for n times in the rest; a compound identifier
    weighs twice that.
    """
    first, _, rest = text.strip().partition("\n")
    weights: defaultdict[str, float] = defaultdict(float)
    for term in count_terms(first):
        weights[term] += FIRST_LINE_WEIGHT
    for term, count in count_terms(rest).items():
        weights[term] += 1 + math.log(count)
    for term in _compounds(text):
        weights[term] *= COMPOUND_WEIGHT
    return {term: weights[term] for term in sorted(weights)}


def spoken_terms(text: str) -> dict[str, str]:
    """For each term of `text`, the first word or part of a word of it that gives the term: what people call it."""
    spoken: dict[str, str] = {}
    for word in WORD.findall(text):
        for part in (*parts_of(word), word.lower().strip("_")):
            for term in terms_of(part):
                spoken.setdefault(term, part)
    return spoken


def _compounds(text: str) -> set[str]:
    return {
        word.lower().strip("_")
        for word in WORD.findall(text)
        if len(word) <= MAX_WORD and len(parts_of(word)) > 1
    }
