"""Past commits and what they touched: files, lines, terms of messages, and the files that change together.

The commits that touched a path are stored with the file that has the path today or, if there is none, under its name
in `lost_paths`. Commits are identified by id; a larger id is newer.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from clean_room_agent.db.curated.files import FILE_COLUMNS, FileRow, file_from

COMMITS_OF_FILE = """
SELECT c.id, c.hash, c.author, c.message, c.timestamp, c.files_changed
FROM file_commits fc JOIN commits c ON c.id = fc.commit_id WHERE fc.file_id = ? ORDER BY c.id DESC LIMIT ?
"""
CO_CHANGES = f"""
SELECT {FILE_COLUMNS}, n.count, n.last_commit_hash FROM (
    SELECT file_b_id AS other, count, last_commit_hash FROM co_changes WHERE file_a_id = ?
    UNION ALL
    SELECT file_a_id, count, last_commit_hash FROM co_changes WHERE file_b_id = ?
) n JOIN files f ON f.id = n.other WHERE n.count >= ? ORDER BY n.count DESC, f.path LIMIT ?
"""  # noqa: S608 - constant columns

SAID = """
SELECT t.commit_id, c.files_changed, CAST(strftime('%s', c.timestamp) AS INTEGER), t.terms
FROM commit_terms t JOIN commits c ON c.id = t.commit_id ORDER BY t.commit_id DESC
"""
SAID_OF = """
SELECT fc.commit_id, fc.file_id FROM commit_terms t JOIN file_commits fc ON fc.commit_id = t.commit_id
ORDER BY fc.commit_id DESC, fc.file_id
"""
INSERT_COMMIT = """
INSERT INTO commits (id, repo_id, hash, author, message, timestamp, files_changed)
VALUES (?, ?, ?, ?, ?, strftime('%Y-%m-%dT%H:%M:%S+00:00', ?, 'unixepoch'), ?)
"""
ADD_PAIR = """
INSERT INTO co_changes (file_a_id, file_b_id, count, last_commit_hash)
VALUES (?1, ?2, ?3, (SELECT hash FROM commits WHERE id = ?4))
ON CONFLICT (file_a_id, file_b_id) DO UPDATE SET
    count = count + excluded.count,
    last_commit_hash = CASE
        WHEN (SELECT id FROM commits WHERE repo_id IN (SELECT id FROM repos) AND hash = last_commit_hash) > ?4 THEN last_commit_hash
        ELSE excluded.last_commit_hash
    END
"""
PAIRS_OF_FILE = """
SELECT theirs.file_id, count(*), max(theirs.commit_id) FROM file_commits mine
JOIN commits c ON c.id = mine.commit_id AND c.files_changed <= ?2
JOIN file_commits theirs ON theirs.commit_id = mine.commit_id AND theirs.file_id <> mine.file_id
WHERE mine.file_id = ?1 GROUP BY theirs.file_id ORDER BY theirs.file_id
"""
TOUCHED = """
SELECT c.id, c.files_changed, fc.file_id FROM commits c LEFT JOIN file_commits fc ON fc.commit_id = c.id
WHERE c.id BETWEEN ? AND ? ORDER BY c.id, fc.file_id
"""
ID_OF_HASH = "SELECT id FROM commits WHERE repo_id IN (SELECT id FROM repos) AND hash = ?"
LIVING = "commit_id IN (SELECT id FROM commits)"
CommitTuple = tuple[int, int, str, str, str, int, int]
"""id, repo_id, hash, author, message, seconds since 1970 UTC, files_changed."""
PairTuple = tuple[int, int, int, int]
"""file_a_id < file_b_id, count, id of the newest commit of both."""


class SaidCommit(NamedTuple):
    """What the message of a past commit says, as search indexes it."""

    id: int
    files_changed: int
    seconds: int
    """Of the committer, since 1970 UTC."""
    terms: str
    """A JSON object: term -> how often."""
    file_ids: list[int]
    """The files of today that it touched."""


class CommitRow(Struct, frozen=True):
    """A past commit; a larger id is newer, in the order of `git log`."""

    id: int
    hash: str
    author: str
    message: str
    timestamp: str
    """Of the committer, UTC, ISO 8601."""
    files_changed: int


class CoChangeRow(Struct, frozen=True, kw_only=True):
    """A file that changed together with another."""

    file: FileRow
    count: int
    """Commits that touched both."""
    last_commit_hash: str
    """The newest of them."""


def list_commits_of_file(conn: sqlite3.Connection, file_id: int, limit: int) -> tuple[CommitRow, ...]:
    """The newest commits that touched the file, newest first."""
    return tuple(CommitRow(*row) for row in conn.execute(COMMITS_OF_FILE, (file_id, limit)))


def list_co_changes(
    conn: sqlite3.Connection, file_id: int, min_count: int, limit: int
) -> tuple[CoChangeRow, ...]:
    """Files that changed together with this one at least `min_count` times, most frequent first, then by path."""
    return tuple(
        CoChangeRow(file=file_from(row), count=row[6], last_commit_hash=row[7])
        for row in conn.execute(CO_CHANGES, (file_id, file_id, min_count, limit))
    )


def newest_commit_time(conn: sqlite3.Connection) -> str | None:
    """When the newest indexed commit was made; None without history."""
    row = conn.execute("SELECT timestamp FROM commits ORDER BY id DESC LIMIT 1").fetchone()
    return None if row is None else str(row[0])


def list_said(conn: sqlite3.Connection) -> Iterator[SaidCommit]:
    """The past commits whose messages are searchable, newest first."""
    touched: dict[int, list[int]] = {}
    cursor = conn.cursor()
    cursor.row_factory = None
    for commit_id, file_id in cursor.execute(SAID_OF):
        touched.setdefault(commit_id, []).append(file_id)
    for commit_id, files_changed, seconds, terms in cursor.execute(SAID):
        yield SaidCommit(commit_id, files_changed, seconds, terms, touched.get(commit_id, []))


def read_message(conn: sqlite3.Connection, commit_id: int) -> tuple[str, str]:
    """The hash and the message of an indexed commit."""
    row = conn.execute("SELECT hash, message FROM commits WHERE id = ?", (commit_id,)).fetchone()
    return str(row[0]), str(row[1])


class TouchedFiles(NamedTuple):
    """A commit with the current files that it touched."""

    id: int
    files_changed: int
    file_ids: tuple[int, ...]


def insert_commits(conn: sqlite3.Connection, commits: Iterable[CommitTuple]) -> None:
    """Insert the commits."""
    conn.executemany(INSERT_COMMIT, commits)


def insert_renames(conn: sqlite3.Connection, renames: Iterable[tuple[int, str, str]]) -> None:
    """Insert each (commit, old path, new path)."""
    conn.executemany(
        "INSERT OR REPLACE INTO renames (commit_id, old_path, new_path) VALUES (?, ?, ?)",
        ((commit, os.fsencode(old), os.fsencode(new)) for commit, old, new in renames),
    )


def list_renames(conn: sqlite3.Connection, oldest: int) -> dict[int, list[tuple[str, str]]]:
    """Commit -> its (old path, new path), from the commit `oldest` on."""
    found: dict[int, list[tuple[str, str]]] = {}
    query = (
        "SELECT commit_id, old_path, new_path FROM renames WHERE commit_id >= ? ORDER BY commit_id, old_path"
    )
    for commit, old, new in conn.execute(query, (oldest,)):
        found.setdefault(commit, []).append((os.fsdecode(old), os.fsdecode(new)))
    return found


def insert_file_commits(conn: sqlite3.Connection, touches: Iterable[tuple[int, int]]) -> None:
    """Insert each (file, commit)."""
    conn.executemany("INSERT OR IGNORE INTO file_commits (file_id, commit_id) VALUES (?, ?)", touches)


def insert_lost_commits(conn: sqlite3.Connection, touches: Mapping[str, Iterable[int]]) -> None:
    """Insert the commits that touched paths which no longer have a file."""
    for path in sorted(touches):
        place = _lost_id(conn, path)
        conn.executemany(
            "INSERT OR IGNORE INTO lost_commits (path_id, commit_id) VALUES (?, ?)",
            ((place, commit) for commit in touches[path]),
        )


def list_lost_paths(conn: sqlite3.Connection) -> tuple[str, ...]:
    """The paths that have commits but no file, in the order they were found."""
    return tuple(os.fsdecode(row[0]) for row in conn.execute("SELECT path FROM lost_paths ORDER BY id"))


def take_past(
    conn: sqlite3.Connection, path: str, file_id: int | None, *, oldest: int, newest: int
) -> list[int]:
    """Detach the commits of this span from the path, and return them."""
    span = (oldest, newest)
    if file_id is not None:
        where = "FROM file_commits WHERE file_id = ? AND commit_id BETWEEN ? AND ?"
        key = file_id
    else:
        row = conn.execute("SELECT id FROM lost_paths WHERE path = ?", (os.fsencode(path),)).fetchone()
        if row is None:
            return []
        where = "FROM lost_commits WHERE path_id = ? AND commit_id BETWEEN ? AND ?"
        key = row[0]
    query = f"SELECT commit_id {where} AND {LIVING} ORDER BY commit_id"
    found = [row[0] for row in conn.execute(query, (key, *span))]
    conn.execute(f"DELETE {where}", (key, *span))
    return found


def put_past(conn: sqlite3.Connection, path: str, file_id: int | None, commits: Iterable[int]) -> None:
    """Attach these commits to the path."""
    if file_id is None:
        insert_lost_commits(conn, {path: commits})
    else:
        insert_file_commits(conn, ((file_id, commit) for commit in commits))


def forget_lost_path(conn: sqlite3.Connection, path: str) -> None:
    """Delete the path from `lost_paths`."""
    conn.execute("DELETE FROM lost_paths WHERE path = ?", (os.fsencode(path),))


def drop_dead_lost(conn: sqlite3.Connection) -> None:
    """Delete lost paths without commits, and their links to deleted commits."""
    conn.execute("DELETE FROM lost_commits WHERE commit_id NOT IN (SELECT id FROM commits)")
    conn.execute("DELETE FROM lost_paths WHERE id NOT IN (SELECT path_id FROM lost_commits)")


def list_ids(conn: sqlite3.Connection, hashes: Iterable[str]) -> dict[str, int]:
    """Hash -> id of those of the commits that are in the database."""
    found = {}
    for name in hashes:
        row = conn.execute(ID_OF_HASH, (name,)).fetchone()
        if row is not None:
            found[name] = int(row[0])
    return found


def list_hashes(conn: sqlite3.Connection, commit_ids: Sequence[int]) -> dict[str, int]:
    """Hash -> id of these commits."""
    rows = (
        conn.execute("SELECT hash FROM commits WHERE id = ?", (number,)).fetchone() for number in commit_ids
    )
    return {row[0]: number for row, number in zip(rows, commit_ids, strict=True)}


def oldest_ids(conn: sqlite3.Connection, limit: int) -> list[int]:
    """The ids of the oldest commits, oldest first."""
    return [row[0] for row in conn.execute("SELECT id FROM commits ORDER BY id LIMIT ?", (limit,))]


def id_at(conn: sqlite3.Connection, rank: int) -> int | None:
    """The id of the commit with exactly `rank` newer ones; None if there are fewer."""
    row = conn.execute("SELECT id FROM commits ORDER BY id DESC LIMIT 1 OFFSET ?", (rank,)).fetchone()
    return None if row is None else int(row[0])


def id_before(conn: sqlite3.Connection, newer: int) -> int | None:
    """The id of the newest commit that is older than `newer`."""
    row = conn.execute("SELECT max(id) FROM commits WHERE id < ?", (newer,)).fetchone()
    return None if row[0] is None else int(row[0])


def list_touched(conn: sqlite3.Connection, oldest: int, newest: int) -> tuple[TouchedFiles, ...]:
    """The commits of this span, oldest first."""
    files_of: dict[tuple[int, int], list[int]] = {}
    for row in conn.execute(TOUCHED, (oldest, newest)):
        touched = files_of.setdefault((row[0], row[1]), [])
        if row[2] is not None:
            touched.append(row[2])
    return tuple(TouchedFiles(commit, changed, tuple(ids)) for (commit, changed), ids in files_of.items())


def delete_commits(conn: sqlite3.Connection, commit_ids: Iterable[int]) -> None:
    """Delete the commits and what they touched; co-change counts stay as they are."""
    conn.executemany("DELETE FROM commits WHERE id = ?", ((commit_id,) for commit_id in commit_ids))


def load_pairs(conn: sqlite3.Connection, pairs: Iterable[tuple[int, int, int, str]]) -> None:
    """Insert each (file_a_id < file_b_id, count, newest commit's hash) into the empty table."""
    conn.executemany(
        "INSERT INTO co_changes (file_a_id, file_b_id, count, last_commit_hash) VALUES (?, ?, ?, ?)", pairs
    )


def add_pairs(conn: sqlite3.Connection, pairs: Iterable[PairTuple]) -> None:
    """Add the counts to the stored ones."""
    conn.executemany(ADD_PAIR, pairs)


def remove_pairs(conn: sqlite3.Connection, pairs: Sequence[tuple[int, int, int]]) -> None:
    """Subtract each (first file, second file, count); a pair that reaches 0 is deleted."""
    conn.executemany(
        "UPDATE co_changes SET count = count - ?3 WHERE file_a_id = ?1 AND file_b_id = ?2", pairs
    )
    conn.executemany(
        "DELETE FROM co_changes WHERE file_a_id = ?1 AND file_b_id = ?2 AND count <= 0",
        [pair[:2] for pair in pairs],
    )


def renew_pairs(conn: sqlite3.Connection, file_id: int, max_files: int) -> None:
    """Recompute the file's pairs from its commits of at most `max_files` files."""
    conn.execute("DELETE FROM co_changes WHERE file_a_id = ?1 OR file_b_id = ?1", (file_id,))
    found = conn.execute(PAIRS_OF_FILE, (file_id, max_files)).fetchall()
    pairs = ((*sorted((file_id, other)), count, newest) for other, count, newest in found)
    conn.executemany(ADD_PAIR, pairs)


def put_terms(conn: sqlite3.Connection, terms: Iterable[tuple[int, str]]) -> None:
    """Store each (commit, JSON object of its message's terms)."""
    conn.executemany("INSERT INTO commit_terms (commit_id, terms) VALUES (?, ?)", terms)


def drop_terms(conn: sqlite3.Connection, before: int) -> None:
    """Delete the terms of commits older than `before`."""
    conn.execute("DELETE FROM commit_terms WHERE commit_id < ?", (before,))


def clear_history(conn: sqlite3.Connection) -> None:
    """Delete all commits, pairs and lost paths."""
    tables = (
        "co_changes",
        "commit_terms",
        "renames",
        "lost_commits",
        "lost_paths",
        "file_commits",
        "commits",
    )
    for table in tables:
        conn.execute(f"DELETE FROM {table}")  # noqa: S608 - constant names


def _lost_id(conn: sqlite3.Connection, path: str) -> int:
    name = os.fsencode(path)
    row = conn.execute("SELECT id FROM lost_paths WHERE path = ?", (name,)).fetchone()
    if row is not None:
        return int(row[0])
    return conn.execute("INSERT INTO lost_paths (path) VALUES (?)", (name,)).lastrowid or 0
