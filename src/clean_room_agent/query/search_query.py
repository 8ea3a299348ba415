"""What the ranking is asked: a task's words as weighted terms, and what the task is known to name."""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from clean_room_agent.indexer.terms import MAX_WORD, WORD, count_terms, parts_of, terms_of
from clean_room_agent.query.file_kinds import FileKind

FIRST_LINE_WEIGHT = 2.0
COMPOUND_WEIGHT = 2.0
ADDED_WEIGHT = 0.5
"""Of an added word, beside one of the task's own."""


@dataclass(frozen=True, kw_only=True)
class SearchQuery:
    """A task as the ranking reads it."""

    text: str
    """The task's own words."""
    added: str = ""
    """Further words to look for: a model's keywords, what failing tests say."""
    names: tuple[str, ...] = ()
    """Plain or dotted words of the task that look like code."""
    paths: tuple[str, ...] = ()
    """Indexed files that the task names."""
    wanted: frozenset[FileKind] = frozenset()
    """The kinds of files, beside code, that the task asks for."""

    @cached_property
    def terms(self) -> Mapping[str, float]:
        """Its search terms with their weights, by term."""
        terms = dict(query_terms(self.text))
        for term, weight in query_terms(self.added).items():
            terms[term] = max(terms.get(term, 0.0), weight * ADDED_WEIGHT)
        return {term: terms[term] for term in sorted(terms)}

    @cached_property
    def surface_forms(self) -> Mapping[str, str]:
        """For each term, the word that a person wrote for it."""
        return surface_forms(f"{self.text}\n{self.added}")


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


def surface_forms(text: str) -> dict[str, str]:
    """For each term of `text`, the first word, or part of a word, that was stemmed to it."""
    forms: dict[str, str] = {}
    for word in WORD.findall(text):
        for part in (*parts_of(word), word.lower().strip("_")):
            for term in terms_of(part):
                forms.setdefault(term, part)
    return forms


def _compounds(text: str) -> set[str]:
    return {
        word.lower().strip("_")
        for word in WORD.findall(text)
        if len(word) <= MAX_WORD and len(parts_of(word)) > 1
    }
