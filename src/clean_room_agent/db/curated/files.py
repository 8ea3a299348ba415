"""The indexed repository: its files, the imports between them and the names that JavaScript and TypeScript modules re-export; and
the state of the index: settings, last commit, time of the last scan.
"""

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct

from clean_room_agent.db.curated.symbols import SymbolRow, get_symbol

NOT_PARSED = "not parsed: "
"""How `parse_error` begins for files that are text only, as the parser was stopped."""
FILE_COLUMNS = "f.id, f.path, f.language, f.content_hash, f.size_bytes, f.parse_error"
REPO = "SELECT id, path, remote_url, indexed_at FROM repos ORDER BY id LIMIT 1"
FILES = f"SELECT {FILE_COLUMNS} FROM files f ORDER BY f.path"  # noqa: S608 - constant columns
FILES_OF_LANGUAGE = f"SELECT {FILE_COLUMNS} FROM files f WHERE f.language = ? ORDER BY f.path"  # noqa: S608
FILE_BY_PATH = f"SELECT {FILE_COLUMNS} FROM files f WHERE f.path = ? ORDER BY f.id LIMIT 1"  # noqa: S608
FILE_BY_ID = f"SELECT {FILE_COLUMNS} FROM files f WHERE f.id = ?"  # noqa: S608
STAMPS = """
SELECT path, size_bytes, mtime_ns, inode FROM files UNION ALL SELECT path, size_bytes, mtime_ns, inode FROM skipped_files
"""
INSERT_FILE = """
INSERT INTO files (id, repo_id, path, language, content_hash, size_bytes, mtime_ns, inode, parse_error)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
UPDATE_FILE = """
UPDATE files SET language = ?, content_hash = ?, size_bytes = ?, mtime_ns = ?, inode = ?, parse_error = ? WHERE id = ?
"""
IMPORTS = f"""
SELECT {FILE_COLUMNS}, d.kind FROM dependencies d JOIN files f ON f.id = d.target_file_id
WHERE d.source_file_id = ? ORDER BY f.path, d.kind
"""  # noqa: S608 - constant columns
IMPORTERS = f"""
SELECT {FILE_COLUMNS}, d.kind FROM dependencies d JOIN files f ON f.id = d.source_file_id
WHERE d.target_file_id = ? ORDER BY f.path, d.kind
"""  # noqa: S608
EDGES = """
SELECT DISTINCT source_file_id, target_file_id, kind FROM dependencies WHERE source_file_id = ? OR target_file_id = ?
ORDER BY source_file_id, target_file_id, kind
"""
OF_FILE = f"""
SELECT {FILE_COLUMNS}, r.name, r.symbol_id FROM reexports r JOIN files f ON f.id = r.target_file_id
WHERE r.file_id = ? ORDER BY r.name
"""  # noqa: S608 - constant columns


Stamp = tuple[int, int, int]
"""Size in bytes, time of change in ns, and inode: they show, without reading it, that a file is as it was."""


class RepoRow(Struct, frozen=True):
    """The repository that the database describes."""

    id: int
    path: str
    """Absolute, of the working tree's root."""
    remote_url: str | None
    indexed_at: str
    """UTC, ISO 8601."""


class FileRow(Struct, frozen=True):
    """An indexed text file."""

    id: int
    path: str
    """Relative to the root, with forward slashes."""
    language: str
    content_hash: str
    """Hex SHA-256 of the bytes."""
    size_bytes: int
    parse_error: str | None
    """The place of the first syntax error; None if there is none, or the file is not parsed."""


class SkippedStamp(NamedTuple):
    """Metadata that shows, without reading it, that a file still does not belong in the index."""

    path: str
    size_bytes: int
    mtime_ns: int
    inode: int
    reason: str
    """Why, if the name says source code; otherwise empty, since nobody expects a picture in an index."""


class NewFileRow(NamedTuple):
    """A row of `files` without id and repository."""

    path: str
    language: str
    content_hash: str
    size_bytes: int
    mtime_ns: int
    inode: int
    parse_error: str | None


def file_from(row: sqlite3.Row) -> FileRow:
    """Make a `FileRow` from a row that begins with `FILE_COLUMNS`."""
    return FileRow(*row[:6])


def get_repo(conn: sqlite3.Connection) -> RepoRow | None:
    """The only repository of the database; None before the first index."""
    row = conn.execute(REPO).fetchone()
    return None if row is None else RepoRow(*row)


def put_repo(conn: sqlite3.Connection, *, path: str, remote_url: str | None, indexed_at: str) -> int:
    """Store the description of the database's only repository; return its id."""
    repo = get_repo(conn)
    if repo is None:
        cursor = conn.execute(
            "INSERT INTO repos (path, remote_url, indexed_at) VALUES (?, ?, ?)",
            (path, remote_url, indexed_at),
        )
        assert cursor.lastrowid is not None
        return cursor.lastrowid
    conn.execute(
        "UPDATE repos SET path = ?, remote_url = ?, indexed_at = ? WHERE id = ?",
        (path, remote_url, indexed_at, repo.id),
    )
    return repo.id


def list_files(conn: sqlite3.Connection, *, language: str | None = None) -> tuple[FileRow, ...]:
    """All files, or those of one language, by path."""
    cursor = conn.execute(FILES) if language is None else conn.execute(FILES_OF_LANGUAGE, (language,))
    return tuple(file_from(row) for row in cursor)


def get_file_by_path(conn: sqlite3.Connection, path: str) -> FileRow | None:
    """The file at exactly this path."""
    row = conn.execute(FILE_BY_PATH, (path,)).fetchone()
    return None if row is None else file_from(row)


def get_file_by_id(conn: sqlite3.Connection, file_id: int) -> FileRow | None:
    """The file with this id."""
    row = conn.execute(FILE_BY_ID, (file_id,)).fetchone()
    return None if row is None else file_from(row)


def list_unparsed(conn: sqlite3.Connection) -> tuple[tuple[str, str], ...]:
    """(path, reason) of source files whose parsing was stopped, so that only their text is indexed; by path."""
    query = "SELECT path, substr(parse_error, ?1 + 1) FROM files WHERE substr(parse_error, 1, ?1) = ?2 ORDER BY path"
    return tuple((row[0], row[1]) for row in conn.execute(query, (len(NOT_PARSED), NOT_PARSED)))


def count_languages(conn: sqlite3.Connection) -> tuple[tuple[str, int], ...]:
    """(language, number of files), most frequent first, then by name."""
    cursor = conn.execute(
        "SELECT language, count(*) AS n FROM files GROUP BY language ORDER BY n DESC, language"
    )
    return tuple((row[0], row[1]) for row in cursor)


def list_stamps(conn: sqlite3.Connection) -> dict[str, Stamp]:
    """The stamps of all files that are in the index, or known not to belong there, by path."""
    cursor = conn.cursor()
    cursor.row_factory = None
    return {row[0]: row[1:] for row in cursor.execute(STAMPS)}


def list_left_out(conn: sqlite3.Connection) -> tuple[tuple[str, str], ...]:
    """(path, reason) of files that look like source code but are not in the index; by path."""
    query = "SELECT path, reason FROM skipped_files WHERE reason <> '' ORDER BY path"
    return tuple((row[0], row[1]) for row in conn.execute(query))


def put_skipped(conn: sqlite3.Connection, stamps: Iterable[SkippedStamp]) -> None:
    """Remember that these files do not belong in the index."""
    conn.executemany("INSERT OR REPLACE INTO skipped_files VALUES (?, ?, ?, ?, ?)", stamps)


def forget_skipped(conn: sqlite3.Connection, paths: Iterable[str]) -> None:
    """Forget that these files do not belong in the index."""
    conn.executemany("DELETE FROM skipped_files WHERE path = ?", [(path,) for path in paths])


def list_ids(conn: sqlite3.Connection) -> dict[str, int]:
    """Path -> id of all files, in order of path."""
    return {row[0]: row[1] for row in conn.execute("SELECT path, id FROM files ORDER BY path")}


def insert_files(conn: sqlite3.Connection, repo_id: int, rows: Iterable[tuple[int, NewFileRow]]) -> None:
    """Insert the files under the given ids."""
    conn.executemany(INSERT_FILE, [(file_id, repo_id, *file) for file_id, file in rows])


def update_file(conn: sqlite3.Connection, file_id: int, file: NewFileRow) -> None:
    """Replace what is stored about the file; its path stays."""
    conn.execute(UPDATE_FILE, (*file[1:], file_id))


def update_stamp(conn: sqlite3.Connection, file_id: int, mtime_ns: int, inode: int) -> None:
    """Store the new stamp of a file whose content is unchanged."""
    conn.execute("UPDATE files SET mtime_ns = ?, inode = ? WHERE id = ?", (mtime_ns, inode, file_id))


def delete_files(conn: sqlite3.Connection, file_ids: Iterable[int]) -> None:
    """Delete the files and everything derived from them."""
    conn.executemany("DELETE FROM files WHERE id = ?", ((file_id,) for file_id in file_ids))


def next_file_id(conn: sqlite3.Connection) -> int:
    """An id greater than any in use."""
    return int(conn.execute("SELECT coalesce(max(id), 0) + 1 FROM files").fetchone()[0])


def get_index_state(conn: sqlite3.Connection, key: str) -> str | None:
    """The value stored under `key`."""
    row = conn.execute("SELECT value FROM index_state WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])


def put_index_state(conn: sqlite3.Connection, key: str, value: str) -> None:
    """Store `value` under `key`."""
    conn.execute(
        "INSERT INTO index_state (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


def count_symbols(conn: sqlite3.Connection) -> int:
    """How many symbols the index holds."""
    return int(conn.execute("SELECT count(*) FROM symbols").fetchone()[0])


def count_commits(conn: sqlite3.Connection) -> int:
    """How many commits the index holds."""
    return int(conn.execute("SELECT count(*) FROM commits").fetchone()[0])


def seen_changes(conn: sqlite3.Connection) -> tuple[int, int]:
    """A value that differs whenever the database was changed, by this connection or another."""
    return conn.total_changes, int(conn.execute("PRAGMA data_version").fetchone()[0])


class DependencyRow(Struct, frozen=True, kw_only=True):
    """A file at the other end of an import."""

    file: FileRow
    kind: str
    """import, or type_ref where only type checkers need it."""


class DependencyEdge(Struct, frozen=True):
    """An import: the source file needs the target file."""

    source_file_id: int
    target_file_id: int
    kind: str


def list_imports(conn: sqlite3.Connection, file_id: int) -> tuple[DependencyRow, ...]:
    """The files that this file imports, by path."""
    return tuple(DependencyRow(file=file_from(row), kind=row[6]) for row in conn.execute(IMPORTS, (file_id,)))


def list_importers(conn: sqlite3.Connection, file_id: int) -> tuple[DependencyRow, ...]:
    """The files that import this file, by path."""
    return tuple(
        DependencyRow(file=file_from(row), kind=row[6]) for row in conn.execute(IMPORTERS, (file_id,))
    )


def list_edges(conn: sqlite3.Connection, file_id: int) -> tuple[DependencyEdge, ...]:
    """The edges into and out of a file, by source and target."""
    return tuple(DependencyEdge(*row) for row in conn.execute(EDGES, (file_id, file_id)))


class ReexportRow(Struct, frozen=True, kw_only=True):
    """A name that a module exports but another file defines."""

    name: str
    """As it is imported from the module; default for all of a CommonJS module."""
    file: FileRow
    """The file that defines it, however many modules pass it on."""
    symbol: SymbolRow | None
    """The symbol of that name; None if the name means the whole file."""


def list_reexports(conn: sqlite3.Connection, file_id: int) -> tuple[ReexportRow, ...]:
    """The names that the file re-exports, by name."""
    return tuple(
        ReexportRow(
            name=row[6], file=file_from(row), symbol=None if row[7] is None else get_symbol(conn, row[7])
        )
        for row in conn.execute(OF_FILE, (file_id,)).fetchall()
    )
