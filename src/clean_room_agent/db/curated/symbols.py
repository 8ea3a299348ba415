"""Definitions, and the uses of one by another."""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

COLUMNS = "s.id, s.file_id, s.name, s.qualified_name, s.kind, s.start_line, s.end_line, s.signature, s.parent_symbol_id"
OF_FILE = f"SELECT {COLUMNS} FROM symbols s WHERE s.file_id = ? ORDER BY s.start_line, s.end_line DESC, s.id"  # noqa: S608 - constant columns
BY_ID = f"SELECT {COLUMNS} FROM symbols s WHERE s.id = ?"  # noqa: S608
BY_NAME = f"""
SELECT {COLUMNS} FROM symbols s JOIN files f ON f.id = s.file_id WHERE s.name = ?
ORDER BY f.path, s.start_line, s.id
"""  # noqa: S608
BY_NAME_ANY_CASE = f"""
SELECT {COLUMNS} FROM symbols s JOIN files f ON f.id = s.file_id WHERE s.name = ? COLLATE NOCASE
ORDER BY f.path, s.start_line, s.id
"""  # noqa: S608
CALLERS = f"""
SELECT {COLUMNS}, r.reference_kind, r.confidence FROM symbol_references r JOIN symbols s ON s.id = r.caller_symbol_id
WHERE r.callee_symbol_id = ? ORDER BY r.confidence DESC, s.file_id, s.start_line, s.id, r.reference_kind
"""  # noqa: S608
CALLEES = f"""
SELECT {COLUMNS}, r.reference_kind, r.confidence FROM symbol_references r JOIN symbols s ON s.id = r.callee_symbol_id
WHERE r.caller_symbol_id = ? ORDER BY r.confidence DESC, s.file_id, s.start_line, s.id, r.reference_kind
"""  # noqa: S608
INSERT_SYMBOL = """
INSERT INTO symbols (id, file_id, name, qualified_name, kind, start_line, end_line, signature, parent_symbol_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
SymbolTuple = tuple[int, int, str, str, str, int, int, str, int | None]
"""id, file_id, name, qualified_name, kind, start_line, end_line, signature, parent_symbol_id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolRow:
    """A definition."""

    id: int
    file_id: int
    name: str
    qualified_name: str
    """Names of the enclosing symbols and its own, joined by dots."""
    kind: str
    """function, class, method, interface, type_alias, enum or variable."""
    start_line: int
    """1-based, inclusive, decorators included."""
    end_line: int
    """1-based, inclusive."""
    signature: str
    """Source text, all its lines."""
    parent_symbol_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighborRow:
    """A symbol that uses, or is used by, another."""

    symbol: SymbolRow
    direction: str
    """caller: `symbol` uses the one that was asked about; callee: it is used by it."""
    reference_kind: str
    confidence: float


def symbol_from(row: sqlite3.Row) -> SymbolRow:
    """The symbol of a row that begins with `COLUMNS`."""
    return SymbolRow(
        id=row[0],
        file_id=row[1],
        name=row[2],
        qualified_name=row[3],
        kind=row[4],
        start_line=row[5],
        end_line=row[6],
        signature=row[7],
        parent_symbol_id=row[8],
    )


def list_symbols(conn: sqlite3.Connection, file_id: int) -> tuple[SymbolRow, ...]:
    """The symbols of a file by first line, the enclosing before the enclosed."""
    return tuple(symbol_from(row) for row in conn.execute(OF_FILE, (file_id,)))


def get_symbol(conn: sqlite3.Connection, symbol_id: int) -> SymbolRow | None:
    """The symbol with this id."""
    row = conn.execute(BY_ID, (symbol_id,)).fetchone()
    return None if row is None else symbol_from(row)


def find_symbols(conn: sqlite3.Connection, name: str) -> tuple[SymbolRow, ...]:
    """All symbols of exactly this name, by path and line."""
    return tuple(symbol_from(row) for row in conn.execute(BY_NAME, (name,)))


def find_symbols_any_case(conn: sqlite3.Connection, name: str) -> tuple[SymbolRow, ...]:
    """All symbols of this name, whatever the case of its ASCII letters, by path and line."""
    return tuple(symbol_from(row) for row in conn.execute(BY_NAME_ANY_CASE, (name,)))


def list_callers(conn: sqlite3.Connection, symbol_id: int) -> tuple[NeighborRow, ...]:
    """The symbols that use this one, the surest first."""
    return _neighbors(conn, CALLERS, symbol_id, "caller")


def list_callees(conn: sqlite3.Connection, symbol_id: int) -> tuple[NeighborRow, ...]:
    """The symbols that this one uses, the surest first."""
    return _neighbors(conn, CALLEES, symbol_id, "callee")


def count_kinds(conn: sqlite3.Connection) -> tuple[tuple[str, int], ...]:
    """How many symbols there are of each kind, by kind."""
    return tuple(
        (row[0], row[1])
        for row in conn.execute("SELECT kind, count(*) FROM symbols GROUP BY kind ORDER BY kind")
    )


def insert_symbols(conn: sqlite3.Connection, symbols: Iterable[SymbolTuple]) -> None:
    """The symbols are in the database; a parent comes before its children."""
    conn.executemany(INSERT_SYMBOL, symbols)


def delete_symbols(conn: sqlite3.Connection, file_id: int) -> None:
    """The file's symbols are gone, with their references and all that was written about them."""
    conn.execute("DELETE FROM symbols WHERE file_id = ?", (file_id,))


def count_symbols(conn: sqlite3.Connection) -> int:
    """How many symbols there are."""
    return int(conn.execute("SELECT count(*) FROM symbols").fetchone()[0])


def next_symbol_id(conn: sqlite3.Connection) -> int:
    """An id above all that symbols have."""
    return int(conn.execute("SELECT coalesce(max(id), 0) + 1 FROM symbols").fetchone()[0])


def _neighbors(
    conn: sqlite3.Connection, query: str, symbol_id: int, direction: str
) -> tuple[NeighborRow, ...]:
    return tuple(
        NeighborRow(symbol=symbol_from(row), direction=direction, reference_kind=row[9], confidence=row[10])
        for row in conn.execute(query, (symbol_id,))
    )
