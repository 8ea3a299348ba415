"""Imports between files of the repository."""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from clean_room_agent.db.curated.files import FILE_COLUMNS, FileRow, file_from

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


@dataclass(frozen=True, slots=True, kw_only=True)
class DependencyRow:
    """A file at the other end of an import."""

    file: FileRow
    kind: str
    """import, or type_ref where only type checkers need it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DependencyEdge:
    """The source file needs the target file."""

    source_file_id: int
    target_file_id: int
    kind: str


def list_imports(conn: sqlite3.Connection, file_id: int) -> tuple[DependencyRow, ...]:
    """What the file imports, by path."""
    return tuple(DependencyRow(file=file_from(row), kind=row[6]) for row in conn.execute(IMPORTS, (file_id,)))


def list_importers(conn: sqlite3.Connection, file_id: int) -> tuple[DependencyRow, ...]:
    """What imports the file, by path."""
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
    """The edges are in the database."""
    conn.executemany(
        "INSERT INTO dependencies (source_file_id, target_file_id, kind) VALUES (?, ?, ?)", edges
    )


def replace_imports(conn: sqlite3.Connection, file_id: int, edges: Iterable[DependencyTuple]) -> None:
    """The file imports just this; rows that say so already stay."""
    missing = set(edges)
    gone = []
    for row_id, *edge in conn.execute(IMPORTS_OF, (file_id,)).fetchall():
        if tuple(edge) in missing:
            missing.discard(tuple(edge))
        else:
            gone.append((row_id,))
    conn.executemany("DELETE FROM dependencies WHERE id = ?", gone)
    insert_dependencies(conn, sorted(missing))
