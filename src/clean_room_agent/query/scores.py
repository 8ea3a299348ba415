"""How well files match a term, and their definitions a task: BM25, for files weighted by field (Robertson, Zaragoza, Taylor
2004), for definitions over their words and the file's path.
"""

import math
import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from clean_room_agent.db.curated import postings
from clean_room_agent.db.curated.postings import FileChunks, read_chunks
from clean_room_agent.db.rows import Connection
from clean_room_agent.indexer.terms import count_terms, terms_of
from clean_room_agent.query.history import CommitHistory

FIELD_WEIGHTS = (6.0, 3.0, 1.5, 1.5, 1.0, 0.56)
"""For path, symbols, docstrings, comments, body, history: measured on 460 tasks of five repositories."""
LENGTH_WEIGHTS = (0.3, 0.0, 0.15, 0.3, 0.6, 0.5)
"""How much a field's length counts against it."""
FIELDS = (*postings.FIELDS, "history")
SATURATION = 8.0
FEW = 50
"""Where no more files hold a term, it tells files apart whatever their share."""
K1, B = 2.0, 0.3
SHARES = (1.0, 0.5, 0.25)
"""Of the best, the second and the third definition of a file."""
MEAN_LENGTH = 90
"""Words of a definition, in round numbers, to compare lengths with."""


class TermGains(Struct, frozen=True):
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


class DefinitionScore(NamedTuple):
    """Of a file, by its best three definitions."""

    score: float
    best: int
    """The best definition, by its position among the file's symbols."""


class ChunkScores:
    """Scores files by their definitions, for one state of the index."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self._known_files: set[int] = set()
        self._words: dict[str, set[str]] = {}
        """Term -> the words of the known files that hold it: what is asked for is then found by equality."""

    def score(self, paths: Mapping[int, str], weights: Mapping[str, float]) -> dict[int, DefinitionScore]:
        """Of these files (id to path), those with a definition that holds a term.

        `weights`: of each term, its weight times its rarity.
        """
        held = {
            file_id: chunks for file_id in paths if (chunks := read_chunks(self._conn, file_id)) is not None
        }
        words = {file_id: chunks.words.split(" ") for file_id, chunks in held.items()}
        for file_id in words.keys() - self._known_files:
            self._add_words(words[file_id])
            self._known_files.add(file_id)
        asked = frozenset(word for term in weights for word in self._words.get(term, ()))
        found = {
            file_id: _best(chunks, words[file_id], paths[file_id], asked, weights)
            for file_id, chunks in held.items()
        }
        return {file_id: one for file_id, one in found.items() if one is not None}

    def _add_words(self, words: Sequence[str]) -> None:
        for word in words:
            for term in terms_of(word):
                self._words.setdefault(term, set()).add(word)


def _best(
    chunks: FileChunks, words: Sequence[str], path: str, asked: Container[str], weights: Mapping[str, float]
) -> DefinitionScore | None:
    wanted = _wanted(words, asked, weights)
    if not wanted:
        return None
    hits_in = re.compile(f"[{re.escape(''.join(wanted))}]").findall
    in_path = {term: count for term, count in count_terms(path).items() if term in weights}
    scored = []
    for place, text in chunks.each():
        hits = hits_in(text)
        if hits:
            norm = K1 * (1 - B + B * len(text) / MEAN_LENGTH)
            scored.append((-_score(Counter(hits), wanted, in_path, weights, norm), place))
    if not scored:
        return None
    scored.sort()
    return DefinitionScore(
        sum(-score * share for (score, _), share in zip(scored, SHARES, strict=False)), scored[0][1]
    )


def _wanted(
    words: Sequence[str], asked: Container[str], weights: Mapping[str, float]
) -> dict[str, tuple[str, ...]]:
    """The numbers of the words that are asked for, each as its character, with their terms."""
    # One byte a word, 1 where it is, found without a step of Python for each of the others.
    flags = bytes(map(asked.__contains__, words))
    wanted = {}
    number = flags.find(1)
    while number >= 0:
        wanted[chr(number)] = tuple(term for term in terms_of(words[number]) if term in weights)
        number = flags.find(1, number + 1)
    return wanted


def _score(
    hits: Mapping[str, int],
    wanted: Mapping[str, tuple[str, ...]],
    in_path: Mapping[str, int],
    weights: Mapping[str, float],
    norm: float,
) -> float:
    counts = dict(in_path)
    for number, times in hits.items():
        for term in wanted[number]:
            counts[term] = counts.get(term, 0) + times
    return sum(weights[term] * count * (K1 + 1) / (count + norm) for term, count in counts.items())
