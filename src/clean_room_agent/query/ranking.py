"""Field-weighted BM25 over the index's own postings (Robertson, Zaragoza, Taylor 2004), with reasons."""

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass

from clean_room_agent.db.curated import files, postings
from clean_room_agent.db.rows import Connection
from clean_room_agent.query.past import Past

FIELD_WEIGHTS = (6.0, 3.0, 1.5, 1.5, 1.0, 0.56)
"""For path, symbols, docstrings, comments, body, history: measured on 460 tasks of five repositories."""
LENGTH_WEIGHTS = (0.3, 0.0, 0.15, 0.3, 0.6, 0.5)
"""How much a field's length counts against it."""
FIELDS = (*postings.FIELDS, "history")
SATURATION = 8.0
REASONS_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A file that a search found."""

    path: str
    file_id: int
    score: float
    """Comparable within one search only."""
    reasons: tuple[str, ...]
    """What contributed most, the strongest first: a term with the fields that hold it."""


class Ranking:
    """Scores files for one state of the index."""

    def __init__(self, conn: Connection) -> None:
        self._paths = {file.id: file.path for file in files.list_files(conn)}
        self._postings = postings.Postings(conn)
        self._past = Past(conn)
        lengths = postings.read_lengths(conn)
        mean = (*lengths.mean, self._past.mean_length(len(lengths.by_file)))
        self._norms = {
            file_id: tuple(
                weight / (1 - b + b * length / mean) if mean else weight
                for weight, b, length, mean in zip(
                    FIELD_WEIGHTS, LENGTH_WEIGHTS, (*values, self._past.length(file_id)), mean, strict=True
                )
            )
            for file_id, values in lengths.by_file.items()
        }

    def search(
        self, terms: Mapping[str, float], *, limit: int, spoken: Mapping[str, str]
    ) -> tuple[SearchHit, ...]:
        """The files that hold any of the terms, the best first, then by path; reasons name terms as `spoken` does."""
        gains = {term: self._gains(term, terms[term]) for term in sorted(terms)}
        scores: dict[int, float] = {}
        for of_term in gains.values():
            for file_id, gain in of_term.items():
                scores[file_id] = scores.get(file_id, 0.0) + gain
        best = heapq.nsmallest(limit, scores, key=lambda file_id: (-scores[file_id], self._paths[file_id]))
        return tuple(
            SearchHit(
                path=self._paths[file_id],
                file_id=file_id,
                score=scores[file_id],
                reasons=self._reasons(file_id, gains, spoken),
            )
            for file_id in best
        )

    def _gains(self, term: str, weight: float) -> dict[int, float]:
        norms = self._norms
        totals: dict[int, float] = {}
        for file_id, path, symbols, docstrings, comments, body in self._postings.of_term(term):
            p, s, d, c, b, _ = norms[file_id]
            totals[file_id] = p * path + s * symbols + d * docstrings + c * comments + b * body
        for file_id, said in self._past.mentions(term).items():
            if file_id in norms:
                totals[file_id] = totals.get(file_id, 0.0) + norms[file_id][-1] * said
        gain = weight * math.log(1 + (len(norms) - len(totals) + 0.5) / (len(totals) + 0.5))
        return {file_id: gain * total / (total + SATURATION) for file_id, total in totals.items()}

    def _reasons(
        self, file_id: int, gains: Mapping[str, Mapping[int, float]], spoken: Mapping[str, str]
    ) -> tuple[str, ...]:
        strongest = sorted((-of_term[file_id], term) for term, of_term in gains.items() if file_id in of_term)
        return tuple(
            f"{spoken.get(term, term)!r} in {self._fields(file_id, term)}"
            for _, term in strongest[:REASONS_SHOWN]
        )

    def _fields(self, file_id: int, term: str) -> str:
        posting = self._postings.of_file(term, file_id)
        content = (0, 0, 0, 0, 0) if posting is None else posting[1:]
        frequencies = (*content, self._past.mentions(term).get(file_id, 0.0))
        shares = (norm * tf for norm, tf in zip(self._norms[file_id], frequencies, strict=True))
        held = sorted((-share, name) for share, name in zip(shares, FIELDS, strict=True) if share > 0)
        return ", ".join(name for _, name in held)
