"""Stored names of each file (imports, interface, uses), where its imports lead, and which names it looked up in others."""

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

ANYWHERE = 0
"""In place of a file's id: names that must be unique in the repository."""
GET = "SELECT imports, interface, uses FROM file_names WHERE file_id = ?"
PUT = "INSERT OR REPLACE INTO file_names (file_id, imports, interface, uses) VALUES (?, ?, ?, ?)"
PUT_LOOKUPS = "INSERT INTO lookups (target_file_id, source_file_id, names) VALUES (?, ?, ?)"
LOOKUPS_OF = "SELECT target_file_id, names FROM lookups WHERE source_file_id = ?"
IMPORTS = """
SELECT n.file_id, f.path, n.imports FROM file_names n JOIN files f ON f.id = n.file_id ORDER BY n.file_id
"""

PUT_TARGETS = "INSERT OR REPLACE INTO import_targets (file_id, targets) VALUES (?, ?)"
ImportTargets = Mapping[str, int | None]
"""Module as written -> the file's id; None for what is outside."""


class StoredNames(NamedTuple):
    """JSON texts of one file; `interface` and `uses` are None where the language has no references."""

    imports: str
    interface: str | None
    uses: str | None


def insert_names(conn: sqlite3.Connection, rows: Iterable[tuple[int, StoredNames]]) -> None:
    """The files say this of names, whatever they said before."""
    conn.executemany(PUT, [(file_id, *names) for file_id, names in rows])


def get_names(conn: sqlite3.Connection, file_id: int) -> StoredNames | None:
    """What the file says; None where it says nothing of names."""
    row = conn.execute(GET, (file_id,)).fetchone()
    return None if row is None else StoredNames(row[0], row[1], row[2])


def delete_names(conn: sqlite3.Connection, file_id: int) -> None:
    """The file says nothing of names."""
    conn.execute("DELETE FROM file_names WHERE file_id = ?", (file_id,))


def list_imports(conn: sqlite3.Connection) -> Iterator[tuple[int, str, str]]:
    """File id, path and imports (JSON) of every file that says something of names, by id."""
    for row in conn.execute(IMPORTS):
        yield row[0], row[1], row[2]


def insert_targets(conn: sqlite3.Connection, file_id: int, targets: ImportTargets) -> None:
    """The file's imports lead there, wherever they led before; a file without any is left out."""
    if targets:
        conn.execute(PUT_TARGETS, (file_id, _targets_text(targets)))


def replace_targets(conn: sqlite3.Connection, file_id: int, targets: ImportTargets) -> None:
    """The file's imports lead there and nowhere else; a row that says so already stays."""
    if not targets:
        conn.execute("DELETE FROM import_targets WHERE file_id = ?", (file_id,))
    elif get_targets(conn, file_id) != targets:
        insert_targets(conn, file_id, targets)


def get_targets(conn: sqlite3.Connection, file_id: int) -> ImportTargets:
    """Where the file's imports lead; empty where it has none, or is Python's."""
    row = conn.execute("SELECT targets FROM import_targets WHERE file_id = ?", (file_id,)).fetchone()
    found: ImportTargets = {} if row is None else json.loads(row[0])
    return found


def _targets_text(targets: ImportTargets) -> str:
    return json.dumps(targets, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def insert_lookups(
    conn: sqlite3.Connection, source_file_id: int, lookups: Mapping[int, Collection[str]]
) -> None:
    """The source file, of which nothing is stored, looked up these names, by id of the file asked or `ANYWHERE`."""
    conn.executemany(
        PUT_LOOKUPS,
        [(target, source_file_id, json.dumps(sorted(lookups[target]))) for target in sorted(lookups)],
    )


def replace_lookups(
    conn: sqlite3.Connection, source_file_id: int, lookups: Mapping[int, Collection[str]]
) -> None:
    """The source file looked up just these names; rows that say so already stay."""
    missing = {target: json.dumps(sorted(looked_up)) for target, looked_up in lookups.items()}
    gone = []
    for target, stored in conn.execute(LOOKUPS_OF, (source_file_id,)).fetchall():
        if missing.get(target) == stored:
            del missing[target]
        else:
            gone.append((target, source_file_id))
    conn.executemany("DELETE FROM lookups WHERE target_file_id = ? AND source_file_id = ?", gone)
    conn.executemany(PUT_LOOKUPS, [(target, source_file_id, missing[target]) for target in sorted(missing)])


def find_lookups(conn: sqlite3.Connection, target_file_id: int, names: Collection[str]) -> set[int]:
    """The files that looked up any of the names in the target."""
    wanted = frozenset(names)
    if not wanted:
        return set()
    rows = conn.execute(
        "SELECT source_file_id, names FROM lookups WHERE target_file_id = ?", (target_file_id,)
    )
    return {row[0] for row in rows if not wanted.isdisjoint(json.loads(row[1]))}


def find_users(conn: sqlite3.Connection, target_file_id: int) -> set[int]:
    """The files that looked up anything in the target."""
    rows = conn.execute("SELECT source_file_id FROM lookups WHERE target_file_id = ?", (target_file_id,))
    return {row[0] for row in rows}
