"""What is asked of the ranking: a task's words, and what is known to be named in them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from clean_room_agent.query.file_kinds import FileKind
from clean_room_agent.query.terms import query_terms, spoken_terms

ADDED_WEIGHT = 0.5
"""What an added word weighs beside one of the task's own."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A task as the ranking reads it."""

    text: str
    """The task, and what goes with it."""
    added: str = ""
    """Words that others added to it."""
    names: tuple[str, ...] = ()
    """Plain or dotted words of it that look like code."""
    paths: tuple[str, ...] = ()
    """Indexed files that it names."""
    wanted: frozenset[FileKind] = frozenset()
    """Kinds of files beside code that it asks for."""

    @cached_property
    def terms(self) -> Mapping[str, float]:
        """Its search terms with their weights, by term."""
        terms = dict(query_terms(self.text))
        for term, weight in query_terms(self.added).items():
            terms[term] = max(terms.get(term, 0.0), weight * ADDED_WEIGHT)
        return {term: terms[term] for term in sorted(terms)}

    @cached_property
    def spoken(self) -> Mapping[str, str]:
        """What people call its terms."""
        return spoken_terms(f"{self.text}\n{self.added}")
