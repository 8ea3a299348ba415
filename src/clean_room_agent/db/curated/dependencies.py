"""Imports between files of the repository, and the names that JavaScript and TypeScript modules re-export."""

import sqlite3
from collections.abc import Iterable

from msgspec import Struct

from clean_room_agent.db.curated.files import FILE_COLUMNS, FileRow, file_from
from clean_room_agent.db.curated.symbols import SymbolRow, get_symbol

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
IMPORTS_OF = "SELECT id, source_file_id, target_file_id, kind FROM dependencies WHERE source_file_id = ?"
DependencyTuple = tuple[int, int, str]
"""source_file_id, target_file_id, kind."""
OF_FILE = f"""
SELECT {FILE_COLUMNS}, r.name, r.symbol_id FROM reexports r JOIN files f ON f.id = r.target_file_id
WHERE r.file_id = ? ORDER BY r.name
"""  # noqa: S608 - constant columns
STORED = "SELECT file_id, name, target_file_id, symbol_id FROM reexports WHERE file_id = ?"
ReexportTuple = tuple[int, str, int, int | None]
"""file_id, name, target_file_id, symbol_id."""


class DependencyRow(Struct, frozen=True, kw_only=True):
    """A file at the other end of an import."""

    file: FileRow
    kind: str
    """import, or type_ref where only type checkers need it."""


class DependencyEdge(Struct, frozen=True, kw_only=True):
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
    return tuple(
        DependencyEdge(source_file_id=row[0], target_file_id=row[1], kind=row[2])
        for row in conn.execute(EDGES, (file_id, file_id))
    )


def insert_dependencies(conn: sqlite3.Connection, edges: Iterable[DependencyTuple]) -> None:
    """Insert the edges."""
    conn.executemany(
        "INSERT INTO dependencies (source_file_id, target_file_id, kind) VALUES (?, ?, ?)", edges
    )


def replace_imports(conn: sqlite3.Connection, file_id: int, edges: Iterable[DependencyTuple]) -> None:
    """Replace the file's imports; rows that are already right are not touched."""
    missing = set(edges)
    gone = []
    for row_id, *edge in conn.execute(IMPORTS_OF, (file_id,)).fetchall():
        if tuple(edge) in missing:
            missing.discard(tuple(edge))
        else:
            gone.append((row_id,))
    conn.executemany("DELETE FROM dependencies WHERE id = ?", gone)
    insert_dependencies(conn, sorted(missing))


class ReexportRow(Struct, frozen=True, kw_only=True):
    """A name that a module exports but another file defines."""

    name: str
    """As it is imported from the module; default for all of a CommonJS module."""
    file: FileRow
    """The file that defines it, however many modules pass it on."""
    symbol: SymbolRow | None
    """The symbol of that name; None if the name stands for the whole file."""


def list_reexports(conn: sqlite3.Connection, file_id: int) -> tuple[ReexportRow, ...]:
    """The names that the file re-exports, by name."""
    return tuple(
        ReexportRow(
            name=row[6], file=file_from(row), symbol=None if row[7] is None else get_symbol(conn, row[7])
        )
        for row in conn.execute(OF_FILE, (file_id,)).fetchall()
    )


def insert_reexports(conn: sqlite3.Connection, rows: Iterable[ReexportTuple]) -> None:
    """Insert re-exports of files that had none."""
    conn.executemany(
        "INSERT INTO reexports (file_id, name, target_file_id, symbol_id) VALUES (?, ?, ?, ?)", rows
    )


def replace_reexports(conn: sqlite3.Connection, file_id: int, rows: Iterable[ReexportTuple]) -> None:
    """Replace the file's re-exports; rows that are already right are not touched."""
    wanted = set(rows)
    stored = {tuple(row) for row in conn.execute(STORED, (file_id,))}
    gone = [(file_id, row[1]) for row in stored - wanted]
    conn.executemany("DELETE FROM reexports WHERE file_id = ? AND name = ?", gone)
    insert_reexports(conn, sorted(wanted - stored, key=lambda row: row[1]))
