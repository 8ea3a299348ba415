"""How well files match a term: field-weighted BM25 over the index's postings (Robertson, Zaragoza, Taylor 2004)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from clean_room_agent.db.curated import postings
from clean_room_agent.db.rows import Connection
from clean_room_agent.query.history import CommitHistory

FIELD_WEIGHTS = (6.0, 3.0, 1.5, 1.5, 1.0, 0.56)
"""For path, symbols, docstrings, comments, body, history: measured on 460 tasks of five repositories."""
LENGTH_WEIGHTS = (0.3, 0.0, 0.15, 0.3, 0.6, 0.5)
"""How much a field's length counts against it."""
FIELDS = (*postings.FIELDS, "history")
SATURATION = 8.0
FEW = 50
"""Where no more files hold a term, it tells files apart whatever their share."""


@dataclass(frozen=True, slots=True)
class TermGains:
    """What one term adds to the scores of the files that hold it."""

    gains: Mapping[int, float]
    """File id -> what the term adds to the file's score."""
    counts: Mapping[int, tuple[int, ...]]
    """File id -> how often the term stands in each field of the contents, where that is not the body alone."""
    in_messages: Mapping[int, float]
    """File id -> how often it stands in the messages of the file's commits."""


class FieldScores:
    """Scores files by the words in their fields, of which the messages of past commits are one; for one state of the index."""

    def __init__(self, conn: Connection, history: CommitHistory) -> None:
        self._postings = postings.Postings(conn)
        self._history = history
        lengths = postings.read_lengths(conn)
        self.files = len(lengths.by_file)
        mean = (*lengths.mean, history.mean_length(self.files))
        self._norms = {
            file_id: tuple(
                weight / (1 - b + b * length / average) if average else weight
                for weight, b, length, average in zip(
                    FIELD_WEIGHTS, LENGTH_WEIGHTS, (*values, history.length(file_id)), mean, strict=True
                )
            )
            for file_id, values in lengths.by_file.items()
        }

    def rarity(self, term: str) -> float:
        """The inverse document frequency of a term over the files' contents; 0 where none holds it."""
        count = self._postings.count(term)
        return _idf(self.files, count) if count else 0.0

    def is_distinctive(self, term: str) -> bool:
        """Whether the term tells files apart: no more than half of them hold it, where they are many."""
        return self._postings.count(term) <= max(self.files // 2, FEW)

    def gains(self, term: str, weight: float) -> TermGains:
        """What the term, of this weight, adds for each file that holds it."""
        norms = self._norms
        totals: dict[int, float] = {}
        counts: dict[int, tuple[int, ...]] = {}
        for first_id, entries in self._postings.of_term(term):
            for slot, path, symbols, docstrings, comments, body in entries:
                file_id = first_id + slot
                p, s, d, c, b, _ = norms[file_id]
                if path or symbols or docstrings or comments:
                    totals[file_id] = b * body + p * path + s * symbols + d * docstrings + c * comments
                    counts[file_id] = path, symbols, docstrings, comments, body
                else:
                    totals[file_id] = b * body
        in_messages = self._history.mentions(term)
        for file_id, times in in_messages.items():
            if file_id in norms:
                totals[file_id] = totals.get(file_id, 0.0) + norms[file_id][-1] * times
        gain = weight * _idf(self.files, len(totals))
        gains = {file_id: gain * total / (total + SATURATION) for file_id, total in totals.items()}
        return TermGains(gains, counts, in_messages)

    def holders(self, term: TermGains, file_id: int) -> tuple[str, ...]:
        """The fields of the file that hold the term, the weightiest first."""
        in_messages = term.in_messages.get(file_id, 0.0)
        only_body = (0, 0, 0, 0, int(file_id in term.gains and not in_messages))
        counts = (*term.counts.get(file_id, only_body), in_messages)
        shares = (norm * count for norm, count in zip(self._norms[file_id], counts, strict=True))
        held = sorted((-share, name) for share, name in zip(shares, FIELDS, strict=True) if share > 0)
        return tuple(name for _, name in held)


def _idf(files: int, holders: int) -> float:
    return math.log(1 + (files - holders + 0.5) / (holders + 0.5))
