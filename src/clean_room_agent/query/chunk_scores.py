"""How well the definitions of a file match a task: BM25 over their words and the file's path."""

import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from clean_room_agent.db.curated.postings import FileChunks, read_chunks
from clean_room_agent.db.rows import Connection
from clean_room_agent.indexer.terms import count_terms, terms_of

K1, B = 2.0, 0.3
SHARES = (1.0, 0.5, 0.25)
"""Of the best, the second and the third definition of a file."""
MEAN_LENGTH = 90
"""Words of a definition, in round numbers, to compare lengths with."""


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
