"""How near the definitions of a file are to a task: BM25 over their words and the file's path."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from clean_room_agent.db.curated.postings import read_chunks
from clean_room_agent.db.rows import Connection
from clean_room_agent.indexer.terms import count_terms, terms_of, terms_of_each

K1, B = 2.0, 0.3
SHARES = (1.0, 0.5, 0.25)
"""What the best, the second and the third definition of a file count."""
MEAN_LENGTH = 90
"""Words of a definition, in round numbers, to compare lengths with."""


class Near(NamedTuple):
    """How near the definitions of a file are."""

    score: float
    place: int
    """Of the nearest one among the file's symbols."""


def nearness(conn: Connection, file_id: int, path: str, weights: Mapping[str, float]) -> Near | None:
    """How near the file's definitions are to the terms, each with its weight and rarity in one; None where none is."""
    held = read_chunks(conn, file_id)
    if held is None:
        return None
    wanted = _wanted(held.words.split(" "), weights)
    if not wanted:
        return None
    in_path = {term: count for term, count in count_terms(path).items() if term in weights}
    scored = []
    for place, words in held.each():
        hits = list(filter(wanted.__contains__, words))
        if hits:
            norm = K1 * (1 - B + B * len(words) / MEAN_LENGTH)
            scored.append((-_score(Counter(hits), wanted, in_path, weights, norm), place))
    if not scored:
        return None
    scored.sort()
    return Near(sum(-score * share for (score, _), share in zip(scored, SHARES, strict=False)), scored[0][1])


def _wanted(words: Sequence[str], weights: Mapping[str, float]) -> dict[int, tuple[str, ...]]:
    """The numbers of the words that hold a term that is asked for, with those terms."""
    # One byte a word, 0 where it does, found without a step of Python for each of the others.
    strange = bytes(map(weights.keys().isdisjoint, terms_of_each(words)))
    wanted = {}
    number = strange.find(0)
    while number >= 0:
        wanted[number] = tuple(term for term in terms_of(words[number]) if term in weights)
        number = strange.find(0, number + 1)
    return wanted


def _score(
    hits: Mapping[int, int],
    wanted: Mapping[int, tuple[str, ...]],
    in_path: Mapping[str, int],
    weights: Mapping[str, float],
    norm: float,
) -> float:
    counts = dict(in_path)
    for number, times in hits.items():
        for term in wanted[number]:
            counts[term] = counts.get(term, 0) + times
    return sum(weights[term] * count * (K1 + 1) / (count + norm) for term, count in counts.items())
