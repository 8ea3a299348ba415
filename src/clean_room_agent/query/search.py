"""Full-text search over the index: what a task asks for, as weighted terms and the files that it names, and how well files,
definitions and past commits match it; and which files changed together.
"""

import json
import math
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import PurePosixPath
from typing import NamedTuple

from msgspec import Struct

from clean_room_agent.db.curated import postings, symbols
from clean_room_agent.db.curated.history import list_said, read_message
from clean_room_agent.db.curated.postings import FileChunks, read_chunks
from clean_room_agent.db.rows import Connection
from clean_room_agent.indexer.terms import MAX_WORD, WORD, count_terms, parts_of, stem, terms_of
from clean_room_agent.paths import FileKind

MAX_COMMITS = 300
"""Of one file, the newest, whose messages count for it."""
NEAREST = 100
"""Commits nearest to a task that vote for their files."""
SHARPNESS = 3
"""The power of a commit's nearness, relative to the nearest one's."""
MESSAGE_K1, MESSAGE_B = 1.2, 0.75
"""BM25's constants for the messages of commits."""
SEEDS = 15
"""Files, best first, of which it is looked up what changed with them."""
DAY = 86_400
VOTE_HALF_LIFE_DAYS = 1500
CO_CHANGE_HALF_LIFE_DAYS = 730
NUMBER = re.compile(r"\d+")
FIRST_LINE_WEIGHT = 2.0
COMPOUND_WEIGHT = 2.0
ADDED_WEIGHT = 0.5
"""Of an added word, beside one of the task's own."""
NAME_IN_TASK = re.compile(r"[A-Za-z_][\w-]*")
SCOPE = re.compile(r"\s*(?:[A-Za-z]+\(([^)\n]{1,60})\)!?:|\[?([\w./-]{2,40})\]?:\s)")
SCOPE_PARTS = re.compile(r"[,/|&\s]+")
KINDS_OF_CHANGE = frozenset(
    {
        *("add", "bug", "build", "chore", "ci", "docs", "enh", "feat", "feature", "fix", "perf", "refactor"),
        *("release", "revert", "style", "test", "tests"),
    }
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
"""The same for definitions."""
SHARES = (1.0, 0.5, 0.25)
"""Of the best, the second and the third definition of a file."""
MEAN_LENGTH = 90
"""Words of a definition, in round numbers, to compare lengths with."""


class Vote(Struct):
    """The votes for one file, added up."""

    weight: float = 0.0
    strongest: float = 0.0
    source: int = 0
    """Of the strongest vote: a commit's position, or a file's id."""
    count: int = 0

    def add(self, weight: float, source: int) -> None:
        """One more vote is counted."""
        self.weight += weight
        self.count += 1
        if weight > self.strongest or self.count == 1:
            self.strongest, self.source = weight, source


class CommitHistory:
    """The commits of one state of the index, by position, newest first; one of n files counts 1/sqrt(n) for each."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        commits = list(list_said(conn))
        self._ids = [commit.id for commit in commits]
        self._text = "\n".join(commit.terms for commit in commits)
        self._starts = list(accumulate((len(commit.terms) + 1 for commit in commits), initial=0))[:-1]
        self._files = [commit.file_ids for commit in commits]
        self._shares = [max(commit.files_changed, 1) ** -0.5 for commit in commits]
        self._sizes = [commit.terms.count(":") for commit in commits]
        newest = max((commit.seconds for commit in commits), default=0)
        self._ages = [max(newest - commit.seconds, 0) / DAY for commit in commits]
        self._counted: list[list[int]] = []
        self._of_file: dict[int, list[int]] = {}
        self._lengths: dict[int, float] = {}
        for position, file_ids in enumerate(self._files):
            counted = []
            length = self._shares[position] * self._sizes[position]
            for file_id in file_ids:
                positions = self._of_file.setdefault(file_id, [])
                positions.append(position)
                if len(positions) <= MAX_COMMITS:
                    counted.append(file_id)
                    self._lengths[file_id] = self._lengths.get(file_id, 0.0) + length
            self._counted.append(counted)
        self._found: dict[str, list[tuple[int, int]]] = {}
        self._mentions: dict[str, dict[int, float]] = {}

    def length(self, file_id: int) -> float:
        """How many terms the messages of a file's commits have, weighted."""
        return self._lengths.get(file_id, 0.0)

    def mean_length(self, files: int) -> float:
        """The mean of `length` over so many files, those without commits included."""
        return sum(self._lengths[file_id] for file_id in sorted(self._lengths)) / max(files, 1)

    def mentions(self, term: str) -> Mapping[int, float]:
        """How often the term occurs in the messages of each file's commits, weighted."""
        found = self._mentions.get(term)
        if found is None:
            found = self._mentions[term] = {}
            for position, times in self._find_commits(term):
                for file_id in self._counted[position]:
                    found[file_id] = found.get(file_id, 0.0) + self._shares[position] * times
        return found

    def votes(self, terms: Mapping[str, float]) -> dict[int, Vote]:
        """The files touched by the past commits whose messages are nearest (BM25) to the weighted terms.

        A newer commit counts for more, and more for each of few files than of many.
        """
        scores: dict[int, float] = {}
        commits = len(self._ids)
        mean = sum(self._sizes) / max(commits, 1) or 1.0
        for term, weight in terms.items():
            found = self._find_commits(term)
            gain = weight * math.log(1 + (commits - len(found) + 0.5) / (len(found) + 0.5)) * (MESSAGE_K1 + 1)
            for position, times in found:
                norm = MESSAGE_K1 * (1 - MESSAGE_B + MESSAGE_B * self._sizes[position] / mean)
                scores[position] = scores.get(position, 0.0) + gain * times / (times + norm)
        nearest = sorted(scores, key=lambda position: (-scores[position], position))[:NEAREST]
        votes: dict[int, Vote] = {}
        for position in nearest:
            nearness = (scores[position] / scores[nearest[0]]) ** SHARPNESS
            weight = nearness * 2 ** (-self._ages[position] / VOTE_HALF_LIFE_DAYS) * self._shares[position]
            for file_id in self._files[position]:
                votes.setdefault(file_id, Vote()).add(weight, position)
        return votes

    def co_changed(self, scores: Mapping[int, float]) -> dict[int, Vote]:
        """The files that changed together with the best of these, by how good those are, how lately and how exclusively."""
        best = sorted(scores, key=lambda file_id: (-scores[file_id], file_id))[:SEEDS]
        votes: dict[int, Vote] = {}
        for seed in best:
            weight = (scores[seed] / scores[best[0]]) ** 2
            for position in self._of_file.get(seed, ()):
                together = self._files[position]
                if len(together) > 1:
                    others = self._shares[position] ** -2 - 1
                    share = weight * 2 ** (-self._ages[position] / CO_CHANGE_HALF_LIFE_DAYS) / others
                    for file_id in together:
                        if file_id != seed:
                            votes.setdefault(file_id, Vote()).add(share, seed)
        return votes

    def commit(self, position: int) -> tuple[str, str]:
        """The hash and the message of the commit at a position that a vote names."""
        return read_message(self._conn, self._ids[position])

    def _find_commits(self, term: str) -> list[tuple[int, int]]:
        """The commits whose messages hold the term: position, and how often."""
        found = self._found.get(term)
        if found is None:
            found = self._found[term] = []
            needle = json.dumps(term) + ":"
            at = self._text.find(needle)
            while at >= 0:
                at += len(needle)
                number = NUMBER.match(self._text, at)
                found.append((bisect_right(self._starts, at) - 1, int(number[0]) if number else 1))
                at = self._text.find(needle, at)
        return found


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
    for term in _compound_words(text):
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


def _compound_words(text: str) -> set[str]:
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
        by_file, means = postings.read_lengths(conn)
        self.files = len(by_file)
        mean = (*means, history.mean_length(self.files))
        self._norms = {
            file_id: tuple(
                weight / (1 - b + b * length / average) if average else weight
                for weight, b, length, average in zip(
                    FIELD_WEIGHTS, LENGTH_WEIGHTS, (*values, history.length(file_id)), mean, strict=True
                )
            )
            for file_id, values in by_file.items()
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
            file_id: _best_definition(chunks, words[file_id], paths[file_id], asked, weights)
            for file_id, chunks in held.items()
        }
        return {file_id: one for file_id, one in found.items() if one is not None}

    def _add_words(self, words: Sequence[str]) -> None:
        for word in words:
            for term in terms_of(word):
                self._words.setdefault(term, set()).add(word)


def _best_definition(
    chunks: FileChunks, words: Sequence[str], path: str, asked: Container[str], weights: Mapping[str, float]
) -> DefinitionScore | None:
    wanted = _wanted_terms(words, asked, weights)
    if not wanted:
        return None
    hits_in = re.compile(f"[{re.escape(''.join(wanted))}]").findall
    in_path = {term: count for term, count in count_terms(path).items() if term in weights}
    scored = []
    for place, text in chunks.each():
        hits = hits_in(text)
        if hits:
            norm = K1 * (1 - B + B * len(text) / MEAN_LENGTH)
            scored.append((-_chunk_score(Counter(hits), wanted, in_path, weights, norm), place))
    if not scored:
        return None
    scored.sort()
    return DefinitionScore(
        sum(-score * share for (score, _), share in zip(scored, SHARES, strict=False)), scored[0][1]
    )


def _wanted_terms(
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


def _chunk_score(
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
