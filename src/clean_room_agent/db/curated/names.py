"""The names stored for each file (imports, interface, uses), where its imports lead, and what it looked up elsewhere."""

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from clean_room_agent.db.rows import insert_rows, replace_rows
from clean_room_agent.json_values import from_json, to_json

ANYWHERE = 0
"""Used instead of a file's id for names that must be unique in the repository."""
GET = "SELECT imports, interface, uses FROM file_names WHERE file_id = ?"
PUT = "INSERT OR REPLACE INTO file_names (file_id, imports, interface, uses) VALUES (?, ?, ?, ?)"
LOOKUP_COLUMNS = ("target_file_id", "source_file_id", "names")
IMPORTS = """
SELECT n.file_id, f.path, n.imports FROM file_names n JOIN files f ON f.id = n.file_id ORDER BY n.file_id
"""

PUT_TARGETS = "INSERT OR REPLACE INTO import_targets (file_id, targets) VALUES (?, ?)"
ImportTargets = Mapping[str, int | None]
"""Module as written -> the file's id; None for what is outside."""


class StoredNames(NamedTuple):
    """JSON texts of one file; `interface` and `uses` are None if the language has no references."""

    imports: str
    interface: str | None
    uses: str | None


def insert_names(conn: sqlite3.Connection, rows: Iterable[tuple[int, StoredNames]]) -> None:
    """Insert or replace the names of these files."""
    conn.executemany(PUT, [(file_id, *names) for file_id, names in rows])


def get_names(conn: sqlite3.Connection, file_id: int) -> StoredNames | None:
    """The file's names, if any are stored."""
    row = conn.execute(GET, (file_id,)).fetchone()
    return None if row is None else StoredNames(row[0], row[1], row[2])


def delete_names(conn: sqlite3.Connection, file_id: int) -> None:
    """Delete the file's names."""
    conn.execute("DELETE FROM file_names WHERE file_id = ?", (file_id,))


def list_imports(conn: sqlite3.Connection) -> Iterator[tuple[int, str, str]]:
    """(file id, path, imports as JSON) of every file with names, by id."""
    for row in conn.execute(IMPORTS):
        yield row[0], row[1], row[2]


def insert_targets(conn: sqlite3.Connection, file_id: int, targets: ImportTargets) -> None:
    """Insert or replace where the file's imports lead; a file without imports gets no row."""
    if targets:
        conn.execute(PUT_TARGETS, (file_id, to_json(dict(sorted(targets.items())))))


def replace_targets(conn: sqlite3.Connection, file_id: int, targets: ImportTargets) -> None:
    """Replace where the file's imports lead; a row that is already right is not touched."""
    if not targets:
        conn.execute("DELETE FROM import_targets WHERE file_id = ?", (file_id,))
    elif get_targets(conn, file_id) != targets:
        insert_targets(conn, file_id, targets)


def get_targets(conn: sqlite3.Connection, file_id: int) -> ImportTargets:
    """Where the file's imports lead; empty if it has none or is a Python file."""
    row = conn.execute("SELECT targets FROM import_targets WHERE file_id = ?", (file_id,)).fetchone()
    return {} if row is None else from_json(row[0], dict[str, int | None])


def insert_lookups(
    conn: sqlite3.Connection, source_file_id: int, lookups: Mapping[int, Collection[str]]
) -> None:
    """Insert the names that a file looked up, by id of the file asked (or `ANYWHERE`); it must have had none."""
    insert_rows(conn, "lookups", LOOKUP_COLUMNS, _lookup_rows(source_file_id, lookups))


def replace_lookups(
    conn: sqlite3.Connection, source_file_id: int, lookups: Mapping[int, Collection[str]]
) -> None:
    """Replace the names that a file looked up; rows that are already right are not touched."""
    rows = _lookup_rows(source_file_id, lookups)
    replace_rows(conn, "lookups", LOOKUP_COLUMNS, "source_file_id = ?", (source_file_id,), rows)


def _lookup_rows(source_file_id: int, lookups: Mapping[int, Collection[str]]) -> list[tuple[int, int, str]]:
    return [(target, source_file_id, to_json(sorted(lookups[target]))) for target in sorted(lookups)]


def find_lookups(conn: sqlite3.Connection, target_file_id: int, names: Collection[str]) -> set[int]:
    """The files that looked up any of the names in the target."""
    wanted = frozenset(names)
    if not wanted:
        return set()
    rows = conn.execute(
        "SELECT source_file_id, names FROM lookups WHERE target_file_id = ?", (target_file_id,)
    )
    return {row[0] for row in rows if not wanted.isdisjoint(from_json(row[1], list[str]))}


def find_users(conn: sqlite3.Connection, target_file_id: int) -> set[int]:
    """The files that looked up anything in the target."""
    rows = conn.execute("SELECT source_file_id FROM lookups WHERE target_file_id = ?", (target_file_id,))
    return {row[0] for row in rows}
