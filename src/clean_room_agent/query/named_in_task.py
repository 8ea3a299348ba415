"""Files that a task names: by their name, by what they define, by the scope before its first line (`fix(cart): …`)."""

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from clean_room_agent.db.curated import symbols
from clean_room_agent.db.rows import Connection
from clean_room_agent.indexer.terms import parts_of, stem
from clean_room_agent.query.search_query import SearchQuery

WORD = re.compile(r"[A-Za-z_][\w-]*")
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
        for word in sorted({word.lower() for word in WORD.findall(text)}):
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
