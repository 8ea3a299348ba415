"""The order of a repository's files by how likely a task is to be about them, with reasons.

Words are the backbone (fields, definitions, past messages); names, scope and shared changes add to them. Each signal
counts a share of its weight, and the shares are added up; files of a kind that the task does not ask for count a part.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clean_room_agent.db.curated import files
from clean_room_agent.db.rows import Connection
from clean_room_agent.query import signals
from clean_room_agent.query.chunk_scores import Chunks
from clean_room_agent.query.fields import Fields
from clean_room_agent.query.file_kinds import FileKind, kind_of
from clean_room_agent.query.history import Past
from clean_room_agent.query.named_in_task import Names
from clean_room_agent.query.question import Question
from clean_room_agent.query.signals import Signal

WEIGHTS: Mapping[str, float] = {
    "fields": 2.0,
    "definitions": 1.0,
    "messages": 1.2,
    "symbols": 0.5,
    "path": 2.0,
    "name": 1.0,
    "scope": 2.0,
    "company": 0.7,
}
"""What each signal counts at most."""
KIND_WEIGHTS: Mapping[FileKind, float] = {"code": 1.0, "test": 0.1, "side": 0.3}
"""What a file counts of a kind that the task does not ask for."""
TERMS = 20
"""Terms of a question that are looked for in files, those that tell most."""
READ_FILES = 16
"""Files, the best by their fields, whose definitions are looked at."""
REASONED = 100
"""Files, best first, that get reasons."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A file that the ranking found."""

    path: str
    file_id: int
    score: float
    """Comparable within one question only; at most the sum of `WEIGHTS`."""
    reasons: tuple[str, ...]
    """What speaks for it, the strongest first."""


class Ranking:
    """Ranks the files of one state of the index."""

    def __init__(self, conn: Connection, *, unheard: int = 0) -> None:
        """`unheard`: so many of the newest commits are not heard, for measuring with their messages as tasks."""
        self._conn = conn
        self._paths = {file.id: file.path for file in files.list_files(conn)}
        self._kinds = {file_id: kind_of(path) for file_id, path in self._paths.items()}
        self._past = Past(conn, unheard=unheard)
        self._fields = Fields(conn, self._past)
        self._names = Names(conn, self._paths)
        self._chunks = Chunks(conn)

    def rank(self, question: Question, *, limit: int) -> tuple[SearchHit, ...]:
        """The first `limit` files for which anything speaks, the best first, then by path."""
        found = self.find(question)
        wanted = {kind: 1.0 if kind in question.wanted else weight for kind, weight in KIND_WEIGHTS.items()}
        scores: dict[int, float] = {}
        for signal in found:
            weight = WEIGHTS[signal.name] / signal.top
            for file_id, value in signal.values.items():
                scores[file_id] = scores.get(file_id, 0.0) + weight * value
        for file_id in scores:
            scores[file_id] *= wanted[self._kinds[file_id]]
        best = heapq.nsmallest(limit, scores, key=lambda file_id: (-scores[file_id], self._paths[file_id]))
        return tuple(
            SearchHit(
                path=self._paths[file_id],
                file_id=file_id,
                score=scores[file_id],
                reasons=_reasons(file_id, found) if place < REASONED else (),
            )
            for place, file_id in enumerate(best)
        )

    def find(self, question: Question) -> tuple[Signal, ...]:
        """All that speaks for files, in the order of `WEIGHTS`."""
        weights = self._telling(question)
        terms = {term: self._fields.gains(term, question.terms[term]) for term in weights}
        by_fields = signals.by_fields(self._fields, question, terms)
        likely = {
            file_id: value for file_id, value in by_fields.values.items() if self._kinds[file_id] != "side"
        }
        read = heapq.nsmallest(
            READ_FILES,
            likely,
            key=lambda file_id: (-likely[file_id] * KIND_WEIGHTS[self._kinds[file_id]], file_id),
        )
        near = self._chunks.near({file_id: self._paths[file_id] for file_id in read}, weights)
        named = {file_id: (1.0, "") for file_id, path in self._paths.items() if path in question.paths}
        scope, names = self._names.in_scope(question.text), self._names.mentioned(question.text)
        return (
            by_fields,
            signals.by_definitions(self._conn, near),
            signals.by_messages(self._past, self._past.votes(question.terms)),
            signals.by_symbols(self._names.defining(question)),
            signals.named("path", named, "named by the task"),
            signals.named("name", names, "the task says {!r}"),
            signals.named("scope", scope, "the task begins with the scope {!r}"),
            signals.by_company(self._paths, self._past.companions(likely)),
        )

    def _telling(self, question: Question) -> dict[str, float]:
        """The terms that tell files apart best, with their weight and rarity in one, by term."""
        weights = {
            term: weight * self._fields.rarity(term)
            for term, weight in question.terms.items()
            if self._fields.is_telling(term)
        }
        best = heapq.nsmallest(TERMS, weights, key=lambda term: (-weights[term], term))
        return {term: weights[term] for term in sorted(best)}


def _reasons(file_id: int, found: Sequence[Signal]) -> tuple[str, ...]:
    speaking = [
        (-WEIGHTS[signal.name] * signal.share(file_id), place)
        for place, signal in enumerate(found)
        if file_id in signal.values
    ]
    return tuple(found[place].explain(file_id) for _, place in sorted(speaking))
