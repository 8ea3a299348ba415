"""What the ranking is asked: a task's words as weighted terms, and the files that it names: by their name, by what they define,
by the scope before its first line (`fix(cart): …`).
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import PurePosixPath

from msgspec import Struct

from clean_room_agent.db.curated import symbols
from clean_room_agent.db.rows import Connection
from clean_room_agent.indexer.terms import MAX_WORD, WORD, count_terms, parts_of, stem, terms_of
from clean_room_agent.path_kinds import FileKind

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
