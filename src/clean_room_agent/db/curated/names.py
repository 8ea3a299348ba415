"""The names stored for each file (imports, interface, uses), and what they resolve to: files that it imports, symbols that it
refers to, names that it re-exports, where its imports lead, and what it looked up elsewhere.
"""

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from clean_room_agent.db.curated.symbols import PLACE_BITS
from clean_room_agent.db.rows import insert_rows, replace_rows
from clean_room_agent.json_values import from_json

ANYWHERE = 0
"""Used instead of a file's id for names that must be unique in the repository."""
GET = "SELECT imports, interface, uses FROM file_names WHERE file_id = ?"
PUT = "INSERT OR REPLACE INTO file_names (file_id, imports, interface, uses) VALUES (?, ?, ?, ?)"
IMPORTS = """
SELECT n.file_id, f.path, n.imports FROM file_names n JOIN files f ON f.id = n.file_id ORDER BY n.file_id
"""

COLUMNS = {
    "dependencies": ("source_file_id", "target_file_id", "kind"),
    "symbol_references": ("caller_symbol_id", "callee_symbol_id", "reference_kind", "confidence"),
    "lookups": ("target_file_id", "source_file_id", "names"),
    "reexports": ("file_id", "name", "target_file_id", "symbol_id"),
    "import_targets": ("file_id", "targets"),
}
"""Of the tables in which a file's resolution is stored."""
OF_A_FILE = {
    "dependencies": "source_file_id = ?1",
    "symbol_references": f"caller_symbol_id >= ?1 << {PLACE_BITS} AND caller_symbol_id < (?1 + 1) << {PLACE_BITS}",
    "lookups": "source_file_id = ?1",
    "reexports": "file_id = ?1",
    "import_targets": "file_id = ?1",
}
"""Which of their rows are a file's."""
ImportTargets = Mapping[str, int | None]
"""Module as written -> the file's id; None for what is outside."""


class StoredNames(NamedTuple):
    """JSON texts of one file; `interface` and `uses` are None if the language has no references."""

    imports: str
    interface: str | None
    uses: str | None


class Resolution(NamedTuple):
    """What one file refers to: the rows of each of the tables, whose names its fields have."""

    dependencies: Sequence[tuple[int, int, str]] = ()
    symbol_references: Sequence[tuple[int, int, str, float]] = ()
    lookups: Sequence[tuple[int, int, str]] = ()
    """The file asked (or `ANYWHERE`), the file that asks, and the names as a sorted JSON array, found or not."""
    reexports: Sequence[tuple[int, str, int, int | None]] = ()
    import_targets: Sequence[tuple[int, str]] = ()
    """`ImportTargets` as JSON; no row for a file without imports."""


def insert_resolutions(conn: sqlite3.Connection, found: Sequence[Resolution]) -> None:
    """Insert the resolutions of files that had none."""
    for table, rows in zip(Resolution._fields, zip(*found, strict=True), strict=False):
        insert_rows(conn, table, COLUMNS[table], chain.from_iterable(rows))


def replace_resolution(conn: sqlite3.Connection, file_id: int, found: Resolution) -> None:
    """Replace the file's resolution; rows that are already right are not touched."""
    for table, rows in zip(Resolution._fields, found, strict=True):
        replace_rows(conn, table, COLUMNS[table], OF_A_FILE[table], (file_id,), rows)


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


def get_targets(conn: sqlite3.Connection, file_id: int) -> ImportTargets:
    """Where the file's imports lead; empty if it has none or is a Python file."""
    row = conn.execute("SELECT targets FROM import_targets WHERE file_id = ?", (file_id,)).fetchone()
    return {} if row is None else from_json(row[0], dict[str, int | None])


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
