"""Past commits, the files that they touched, and the files that change together."""

import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct

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

SAID = """
SELECT t.commit_id, c.files_changed, CAST(strftime('%s', c.timestamp) AS INTEGER), t.terms
FROM commit_terms t JOIN commits c ON c.id = t.commit_id ORDER BY t.commit_id DESC
"""
SAID_OF = """
SELECT fc.commit_id, fc.file_id FROM commit_terms t JOIN file_commits fc ON fc.commit_id = t.commit_id
ORDER BY fc.commit_id DESC, fc.file_id
"""


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
    insertions: int | None
    """None where lines were not counted."""
    deletions: int | None


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
