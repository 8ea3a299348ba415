"""Names that JavaScript and TypeScript modules re-export."""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from clean_room_agent.db.curated.files import FILE_COLUMNS, FileRow, file_from
from clean_room_agent.db.curated.symbols import SymbolRow, get_symbol

OF_FILE = f"""
SELECT {FILE_COLUMNS}, r.name, r.symbol_id FROM reexports r JOIN files f ON f.id = r.target_file_id
WHERE r.file_id = ? ORDER BY r.name
"""  # noqa: S608 - constant columns
STORED = "SELECT file_id, name, target_file_id, symbol_id FROM reexports WHERE file_id = ?"
ReexportTuple = tuple[int, str, int, int | None]
"""file_id, name, target_file_id, symbol_id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReexportRow:
    """A name that a module offers and another file defines."""

    name: str
    """As it is imported from the module; default for all of a CommonJS module."""
    file: FileRow
    """The file that defines it, however many modules pass it on."""
    symbol: SymbolRow | None
    """What the name stands for; None where that is all of the file."""


def list_reexports(conn: sqlite3.Connection, file_id: int) -> tuple[ReexportRow, ...]:
    """What the file passes on, by name."""
    return tuple(
        ReexportRow(
            name=row[6], file=file_from(row), symbol=None if row[7] is None else get_symbol(conn, row[7])
        )
        for row in conn.execute(OF_FILE, (file_id,)).fetchall()
    )


def insert_reexports(conn: sqlite3.Connection, rows: Iterable[ReexportTuple]) -> None:
    """The files, of which nothing is stored, pass this on."""
    conn.executemany(
        "INSERT INTO reexports (file_id, name, target_file_id, symbol_id) VALUES (?, ?, ?, ?)", rows
    )


def replace_reexports(conn: sqlite3.Connection, file_id: int, rows: Iterable[ReexportTuple]) -> None:
    """The file passes on just this; rows that say so already stay."""
    wanted = set(rows)
    stored = {tuple(row) for row in conn.execute(STORED, (file_id,))}
    gone = [(file_id, row[1]) for row in stored - wanted]
    conn.executemany("DELETE FROM reexports WHERE file_id = ? AND name = ?", gone)
    insert_reexports(conn, sorted(wanted - stored, key=lambda row: row[1]))
