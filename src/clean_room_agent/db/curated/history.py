"""Past commits, the files that they touched, and the files that change together."""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from clean_room_agent.db.curated.files import FILE_COLUMNS, FileRow, file_from

COMMITS_OF_FILE = """
SELECT c.id, c.hash, c.author, c.message, c.timestamp, c.files_changed, c.insertions, c.deletions
FROM file_commits fc JOIN commits c ON c.id = fc.commit_id WHERE fc.file_id = ? ORDER BY c.id DESC LIMIT ?
"""
CO_CHANGES = f"""
SELECT {FILE_COLUMNS}, n.count, n.last_commit_hash FROM (
    SELECT file_b_id AS other, count, last_commit_hash FROM co_changes WHERE file_a_id = ?
    UNION ALL
    SELECT file_a_id, count, last_commit_hash FROM co_changes WHERE file_b_id = ?
) n JOIN files f ON f.id = n.other WHERE n.count >= ? ORDER BY n.count DESC, f.path LIMIT ?
"""  # noqa: S608 - constant columns
INSERT_COMMIT = """
INSERT INTO commits (id, repo_id, hash, author, message, timestamp, files_changed, insertions, deletions)
VALUES (?, ?, ?, ?, ?, ?, ?, NULL, NULL)
"""
MESSAGES_OF_FILE = """
SELECT c.id, c.message, c.files_changed FROM file_commits fc JOIN commits c ON c.id = fc.commit_id
WHERE fc.file_id = ? AND c.files_changed <= ? ORDER BY c.id DESC LIMIT ?
"""
OLDEST = """
SELECT c.id, c.files_changed, fc.file_id FROM (SELECT id, files_changed FROM commits ORDER BY id LIMIT ?) c
LEFT JOIN file_commits fc ON fc.commit_id = c.id ORDER BY c.id, fc.file_id
"""
ADD_PAIR = """
INSERT INTO co_changes (file_a_id, file_b_id, count, last_commit_hash) VALUES (?, ?, ?, ?)
ON CONFLICT (file_a_id, file_b_id)
DO UPDATE SET count = count + excluded.count, last_commit_hash = excluded.last_commit_hash
"""
CommitTuple = tuple[int, int, str, str, str, str, int]
"""id, repo_id, hash, author, message, timestamp, files_changed."""
PairTuple = tuple[int, int, int, str]
"""file_a_id < file_b_id, count, last_commit_hash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRow:
    """A past commit; a larger id is newer."""

    id: int
    hash: str
    author: str
    message: str
    timestamp: str
    """Of the author, UTC, ISO 8601."""
    files_changed: int
    insertions: int | None
    """None where lines were not counted."""
    deletions: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CoChangeRow:
    """A file that changed together with another."""

    file: FileRow
    count: int
    """Commits that touched both."""
    last_commit_hash: str
    """The newest of them."""


def list_commits_of_file(conn: sqlite3.Connection, file_id: int, limit: int) -> tuple[CommitRow, ...]:
    """The newest commits that touched the file, newest first."""
    return tuple(
        CommitRow(
            id=row[0],
            hash=row[1],
            author=row[2],
            message=row[3],
            timestamp=row[4],
            files_changed=row[5],
            insertions=row[6],
            deletions=row[7],
        )
        for row in conn.execute(COMMITS_OF_FILE, (file_id, limit))
    )


def list_co_changes(
    conn: sqlite3.Connection, file_id: int, min_count: int, limit: int
) -> tuple[CoChangeRow, ...]:
    """The files that changed with this one at least `min_count` times, the most frequent first, then by path."""
    return tuple(
        CoChangeRow(file=file_from(row), count=row[6], last_commit_hash=row[7])
        for row in conn.execute(CO_CHANGES, (file_id, file_id, min_count, limit))
    )


def count_commits(conn: sqlite3.Connection) -> int:
    """How many commits are indexed."""
    return int(conn.execute("SELECT count(*) FROM commits").fetchone()[0])


def newest_commit_time(conn: sqlite3.Connection) -> str | None:
    """When the newest indexed commit was made; None without history."""
    row = conn.execute("SELECT timestamp FROM commits ORDER BY id DESC LIMIT 1").fetchone()
    return None if row is None else str(row[0])


def next_commit_id(conn: sqlite3.Connection) -> int:
    """An id above all that commits have."""
    return int(conn.execute("SELECT coalesce(max(id), 0) + 1 FROM commits").fetchone()[0])


def insert_commits(conn: sqlite3.Connection, commits: Iterable[CommitTuple]) -> None:
    """The commits are in the database, their lines uncounted."""
    conn.executemany(INSERT_COMMIT, commits)


def insert_file_commits(conn: sqlite3.Connection, touches: Iterable[tuple[int, int]]) -> None:
    """Each (file, commit) is in the database."""
    conn.executemany("INSERT INTO file_commits (file_id, commit_id) VALUES (?, ?)", touches)


def add_pairs(conn: sqlite3.Connection, pairs: Iterable[PairTuple]) -> None:
    """The counts are added to what is there; the given commits are the newest of their pairs."""
    conn.executemany(ADD_PAIR, pairs)


def remove_pairs(conn: sqlite3.Connection, pairs: Iterable[tuple[int, int, int]]) -> None:
    """Each (first file, second file, count) is taken off what is there; a pair that reaches 0 is gone."""
    conn.executemany(
        "UPDATE co_changes SET count = count - ?3 WHERE file_a_id = ?1 AND file_b_id = ?2",
        pairs,
    )
    conn.execute("DELETE FROM co_changes WHERE count <= 0")


def list_messages_of_file(
    conn: sqlite3.Connection, file_id: int, *, max_files: int, limit: int
) -> tuple[tuple[int, str, int], ...]:
    """(id, message, files changed) of the newest commits of at most `max_files` that touched the file, newest first."""
    return tuple(
        (row[0], row[1], row[2]) for row in conn.execute(MESSAGES_OF_FILE, (file_id, max_files, limit))
    )


def list_oldest(conn: sqlite3.Connection, count: int) -> tuple[tuple[int, int, tuple[int, ...]], ...]:
    """(id, files changed, ids of its files) of the oldest commits, oldest first."""
    files_of: dict[tuple[int, int], list[int]] = {}
    for row in conn.execute(OLDEST, (count,)):
        touched = files_of.setdefault((row[0], row[1]), [])
        if row[2] is not None:
            touched.append(row[2])
    return tuple((commit, changed, tuple(touched)) for (commit, changed), touched in files_of.items())


def delete_commits(conn: sqlite3.Connection, commit_ids: Iterable[int]) -> None:
    """The commits are gone, and what files they touched; pairs stay as they are."""
    conn.executemany("DELETE FROM commits WHERE id = ?", ((commit_id,) for commit_id in commit_ids))


def clear_history(conn: sqlite3.Connection) -> None:
    """No commit and no pair is left."""
    conn.execute("DELETE FROM co_changes")
    conn.execute("DELETE FROM file_commits")
    conn.execute("DELETE FROM commits")
