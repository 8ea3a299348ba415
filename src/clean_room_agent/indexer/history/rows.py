"""Turns log entries into rows: for a new index, or for commits that were added to one."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from msgspec import Struct

from clean_room_agent.db.curated import history
from clean_room_agent.db.curated.history import CommitTuple
from clean_room_agent.db.rows import Connection
from clean_room_agent.git.log import LogEntry
from clean_room_agent.indexer.terms import count_terms

GAP = 1 << 12
"""Between the ids of commits, for what merges will bring."""
SEARCHED_COMMITS = 3000
"""The newest ones, whose messages are searched."""
SEARCHED_FILES = 30
"""Commits that touched more files say little of each."""
LAST_SECOND = 253_402_300_799  # of the year 9999
Renames = Sequence[tuple[str, str]]
"""(old path, new path) of one commit."""

# Sorted by term.
_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


class Scope(Struct, frozen=True, kw_only=True):
    """What all rows of the history refer to, and its limits."""

    repo_id: int
    ids: Mapping[str, int]
    """Path -> id of all files of today."""
    bound: int
    pair_bound: int


class PastPlaces(dict[str, int]):
    """Path in a past commit -> id of the current file, or a negative number: `lost[-1 - place]` is a path without one.

    Look paths up commit by commit, newest first, and call `follow` after each commit that renames files:

        commit 3 touches c           c is c
        commit 2 renames b -> c      from here on, b is c
        commit 1 renames a -> b      from here on, a is b, so a is c
    """

    def __init__(self, ids: Mapping[str, int]) -> None:
        super().__init__()
        self.lost: list[str] = []
        self._ids = ids

    def __missing__(self, path: str) -> int:
        place = self._ids.get(path)
        if place is None:
            self.lost.append(path)
            place = -len(self.lost)
        self[path] = place
        return place

    def follow(self, renames: Renames) -> None:
        """From here on (that is, in older commits), treat each old path as the file of its new path."""
        self.update([(old, self[new]) for old, new in renames])


class Touches:
    """What numbered commits touched: current files, and paths that no longer have a file."""

    def __init__(self, places: PastPlaces) -> None:
        self.by_file: dict[int, list[int]] = {}
        self.by_commit: list[tuple[int, int, list[int]]] = []
        """Commit, how many files it changed, the ids of those of today, sorted."""
        self._places = places
        self._by_lost: dict[int, list[int]] = {}

    def add(self, commit: int, entry: LogEntry) -> None:
        """Record the paths of one commit. Add commits newest first."""
        files = []
        for place in sorted(set(map(self._places.__getitem__, entry.paths))):
            where = self.by_file if place >= 0 else self._by_lost
            if place in where:
                where[place].append(commit)
            else:
                where[place] = [commit]
            if place >= 0:
                files.append(place)
        self.by_commit.append((commit, entry.files_changed, files))
        if entry.renames:
            self._places.follow(entry.renames)

    def store(self, conn: Connection) -> None:
        """Insert which files, and which paths without a current file, the commits touched."""
        files = ((file, commit) for file in sorted(self.by_file) for commit in reversed(self.by_file[file]))
        history.insert_file_commits(conn, files)
        lost = self._places.lost
        history.insert_lost_commits(
            conn, {lost[-1 - place]: commits for place, commits in self._by_lost.items()}
        )

    def pairs(self, bound: int) -> tuple[Counter[tuple[int, int]], dict[tuple[int, int], int]]:
        """For each pair of files, how many commits touched both, and the newest of them.

        Commits that touched more than `bound` files do not count.
        """
        counts: Counter[tuple[int, int]] = Counter()
        newest: dict[tuple[int, int], int] = {}
        for commit, changed, files in reversed(self.by_commit):
            if changed <= bound and len(files) > 1:
                pairs = list(combinations(files, 2))
                counts.update(pairs)
                newest.update(dict.fromkeys(pairs, commit))
        return counts, newest


def write_commits(conn: Connection, repo_id: int, entries: Sequence[LogEntry]) -> None:
    """Replace the history by `entries`, newest first. What they touched is written by `write_touches`."""
    history.clear_history(conn)
    numbered = list(zip(_commit_ids(entries), entries, strict=True))
    insert_commits(conn, repo_id, reversed(numbered))
    insert_terms(conn, reversed(numbered[:SEARCHED_COMMITS]))


def write_touches(conn: Connection, scope: Scope, entries: Sequence[LogEntry]) -> None:
    """Write what `entries`, just written by `write_commits`, touched."""
    touches = Touches(PastPlaces(scope.ids))
    numbered = dict(zip(_commit_ids(entries), entries, strict=True))
    for number, entry in numbered.items():
        touches.add(number, entry)
    touches.store(conn)
    pair_counts, newest = touches.pairs(scope.pair_bound)
    history.load_pairs(
        conn, ((*pair, pair_counts[pair], numbered[newest[pair]].hash) for pair in sorted(pair_counts))
    )


def _commit_ids(entries: Sequence[LogEntry]) -> range:
    """Ids for that many commits, newest first, with gaps for commits that arrive in between."""
    return range(len(entries) * GAP, 0, -GAP)


def insert_commits(conn: Connection, repo_id: int, numbered: Iterable[tuple[int, LogEntry]]) -> None:
    """Insert the commits and their renames."""
    listed = list(numbered)
    history.insert_commits(conn, (_commit_row(repo_id, number, entry) for number, entry in listed))
    history.insert_renames(
        conn, ((number, old, new) for number, entry in listed for old, new in entry.renames)
    )


def insert_terms(conn: Connection, numbered: Iterable[tuple[int, LogEntry]]) -> None:
    """Store the search terms of these commits' messages, except for commits that touched too many files."""
    searched = ((number, entry) for number, entry in numbered if entry.files_changed <= SEARCHED_FILES)
    history.put_terms(conn, ((number, _encode(count_terms(entry.message))) for number, entry in searched))


def _commit_row(repo_id: int, number: int, entry: LogEntry) -> CommitTuple:
    when = min(max(entry.timestamp, 0), LAST_SECOND)
    return (number, repo_id, entry.hash, entry.author, entry.message, when, entry.files_changed)
