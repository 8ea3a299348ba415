"""Full-text search over the index: what a task asks for, as weighted terms and the files that it names, and how well files and
definitions match it.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import PurePosixPath
from typing import NamedTuple

from msgspec import Struct

from clean_room_agent.db.curated import postings, symbols
from clean_room_agent.db.curated.postings import FileChunks, read_chunks
from clean_room_agent.db.rows import Connection
from clean_room_agent.indexer.terms import MAX_WORD, WORD, count_terms, parts_of, stem, terms_of
from clean_room_agent.paths import FileKind
from clean_room_agent.query.history import CommitHistory

FIRST_LINE_WEIGHT = 2.0
COMPOUND_WEIGHT = 2.0
ADDED_WEIGHT = 0.5
"""Of an added word, beside one of the task's own."""
NAME_IN_TASK = re.compile(r"[A-Za-z_][\w-]*")
SCOPE = re.compile(r"\s*(?:[A-Za-z]+\(([^)\n]{1,60})\)!?:|\[?([\w./-]{2,40})\]?:\s)")
SCOPE_PARTS = re.compile(r"[,/|&\s]+")
KINDS_OF_CHANGE = frozenset(
    [
        "add",
        "bug",
        "build",
        "chore",
        "ci",
        "docs",
        "enh",
        "feat",
        "feature",
        "fix",
        "perf",
        "refactor",
        "release",
        "revert",
        "style",
        "test",
        "tests",
    ]
)
FOLDER_FILES = frozenset({"index", "__init__", "__main__", "mod"})
"""Files that are called by their folder's name."""
FOLDER_NAMED = 0.5
SCOPE_IN_PART = 0.7
"""What a scope counts that is only one word of a name."""
SHORTEST_STEM = 3
FIELD_WEIGHTS = (6.0, 3.0, 1.5, 1.5, 1.0, 0.56)
"""For path, symbols, docstrings, comments, body, history: measured on 460 tasks of five repositories."""
LENGTH_WEIGHTS = (0.3, 0.0, 0.15, 0.3, 0.6, 0.5)
"""How much a field's length counts against it."""
FIELDS = (*postings.FIELDS, "history")
SATURATION = 8.0
FEW = 50
"""If no more files than this hold a term, it tells files apart whatever their share."""
K1, B = 2.0, 0.3
SHARES = (1.0, 0.5, 0.25)
"""Of the best, the second and the third definition of a file."""
MEAN_LENGTH = 90
"""Words of a definition, in round numbers, to compare lengths with."""


class SearchQuery(Struct, frozen=True, kw_only=True, dict=True):
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


class NameIndex:
    """The names of files and definitions in one state of the index."""

    def __init__(self, conn: Connection, paths: Mapping[int, str]) -> None:
        self._conn = conn
        self._paths = paths
        self._stems: dict[str, list[tuple[int, float]]] = {}
        for file_id, path in paths.items():
            name, weight = _stem_of(path)
            if len(name) >= SHORTEST_STEM:
                for known in {name, name.strip("_")}:
                    self._stems.setdefault(known, []).append((file_id, weight))

    def mentioned(self, text: str) -> dict[int, tuple[float, str]]:
        """The files whose name without its ending is a word of the text: 1, or less for a folder's name; and that word."""
        found: dict[int, tuple[float, str]] = {}
        for word in sorted({word.lower() for word in NAME_IN_TASK.findall(text)}):
            for file_id, weight in self._stems.get(word, ()):
                if weight > found.get(file_id, (0.0, ""))[0]:
                    found[file_id] = weight, word
        return found

    def defining(self, query: SearchQuery) -> dict[int, tuple[float, str]]:
        """The files that define what the query names: more for a name that few define; and the rarest name."""
        found: dict[int, tuple[float, str]] = {}
        best: dict[int, float] = {}
        for name in _plain_names(query.names):
            holders = [one for one in symbols.files_defining(self._conn, name) if one in self._paths]
            if holders:
                gain = math.log(1 + len(self._paths) / len(holders)) / math.sqrt(len(holders))
                for file_id in holders:
                    total, rarest = found.get(file_id, (0.0, ""))
                    if gain > best.get(file_id, 0.0):
                        best[file_id], rarest = gain, name
                    found[file_id] = total + gain, rarest
        return found

    def in_scope(self, text: str) -> dict[int, tuple[float, str]]:
        """The files that a prefix such as `fix(cart):` or `cart:` means, 1 or less; and its word."""
        match = SCOPE.match(text)
        if match is None or (match[2] and match[2].lower() in KINDS_OF_CHANGE):
            return {}
        found: dict[int, tuple[float, str]] = {}
        for word in SCOPE_PARTS.split((match[1] or match[2]).lower()):
            if len(word) > 1:
                for file_id, path in self._paths.items():
                    weight = _scope_weight(word, path) if word[:SHORTEST_STEM] in path.lower() else 0.0
                    if weight > found.get(file_id, (0.0, ""))[0]:
                        found[file_id] = weight, word
        return found


def _plain_names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part for name in names for part in (*name.split("."), name)))


def _stem_of(path: str) -> tuple[str, float]:
    place = PurePosixPath(path)
    name = place.name.split(".")[0].lower()
    if name in FOLDER_FILES:
        return place.parent.name.lower(), FOLDER_NAMED
    return name, 1.0


def _scope_weight(word: str, path: str) -> float:
    *folders, name = path.lower().split("/")
    names = {*folders, name.split(".")[0]}
    if names & {word, f"{word}s", word.removesuffix("s")}:
        return 1.0
    *spelled, last = path.split("/")
    parts = {stem(part) for one in (*spelled, last.split(".")[0]) for part in parts_of(one)}
    return SCOPE_IN_PART if stem(word) in parts else 0.0


class TermGains(Struct, frozen=True):
    """What one term adds to the scores of the files that hold it."""

    gains: Mapping[int, float]
    """File id -> what the term adds to the file's score."""
    counts: Mapping[int, tuple[int, ...]]
    """File id -> how often the term occurs in each field of the contents, if that is not the body alone."""
    in_messages: Mapping[int, float]
    """File id -> how often it occurs in the messages of the file's commits."""


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
            for slot, path, names, docstrings, comments, body in entries:
                file_id = first_id + slot
                p, s, d, c, b, _ = norms[file_id]
                if path or names or docstrings or comments:
                    totals[file_id] = b * body + p * path + s * names + d * docstrings + c * comments
                    counts[file_id] = path, names, docstrings, comments, body
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
