"""Symbols, references from one symbol to another, and their docstrings and comments."""

import json
import sqlite3
from collections.abc import Iterable, Sequence

from msgspec import Struct

COLUMNS = "s.id, s.file_id, s.name, s.qualified_name, s.kind, s.start_line, s.end_line, s.signature, s.parent_symbol_id"
OF_FILE = f"SELECT {COLUMNS} FROM symbols s WHERE s.file_id = ? ORDER BY s.start_line, s.end_line DESC, s.id"  # noqa: S608 - constant columns
BY_ID = f"SELECT {COLUMNS} FROM symbols s WHERE s.id = ?"  # noqa: S608
BY_NAME = f"""
SELECT {COLUMNS} FROM symbols s JOIN files f ON f.id = s.file_id WHERE s.name = ?
ORDER BY f.path, s.start_line, s.id
"""  # noqa: S608
NEIGHBORS = f"""
SELECT {COLUMNS}, r.reference_kind, r.confidence FROM symbol_references r JOIN symbols s ON s.id = r.{{}}_symbol_id
WHERE r.{{}}_symbol_id = ? ORDER BY r.confidence DESC, s.file_id, s.start_line, s.id, r.reference_kind
"""  # noqa: S608
INSERT_SYMBOL = """
INSERT INTO symbols
(id, file_id, place, name, qualified_name, kind, start_line, end_line, signature, parent_symbol_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
PUT_SYMBOL = f"""
{INSERT_SYMBOL} ON CONFLICT (id) DO UPDATE SET place = excluded.place, name = excluded.name,
qualified_name = excluded.qualified_name, kind = excluded.kind, start_line = excluded.start_line,
end_line = excluded.end_line, signature = excluded.signature, parent_symbol_id = excluded.parent_symbol_id
"""
MOVE_SYMBOL = "UPDATE symbols SET place = ?, start_line = ?, end_line = ?, signature = ? WHERE id = ?"
STORED = """
SELECT id, file_id, place, name, qualified_name, kind, start_line, end_line, signature, parent_symbol_id FROM symbols
WHERE file_id = ? ORDER BY place
"""
IDS = "SELECT id, qualified_name FROM symbols WHERE file_id = ? ORDER BY place"
UNIQUE = """
SELECT s.file_id, s.place FROM symbols s JOIN files f ON f.id = s.file_id
WHERE s.name = ? AND s.kind IN ('function', 'class', 'method') AND f.language IN (SELECT value FROM json_each(?))
ORDER BY s.id LIMIT 2
"""
COUNT_NAMED = """
SELECT count(*) FROM symbols s JOIN files f ON f.id = s.file_id
WHERE s.name = ? AND s.kind IN ('function', 'class', 'method') AND f.language IN (SELECT value FROM json_each(?))
"""
CALLABLE = frozenset({"function", "class", "method"})
PLACE_BITS = 20
"""The lower bits of an id tell symbols of a file apart, the upper ones are the file's id."""
SymbolTuple = tuple[int, int, int, str, str, str, int, int, str, int | None]
"""id, file_id, place, name, qualified_name, kind, start_line, end_line, signature, parent_symbol_id."""
DOCSTRINGS = """
SELECT id, symbol_id, file_id, content, format, parsed_fields FROM docstrings WHERE file_id = ?
ORDER BY symbol_id IS NOT NULL, symbol_id, id
"""
RATIONALE = """
SELECT id, file_id, symbol_id, line, content, kind, is_rationale FROM inline_comments
WHERE file_id = ? AND is_rationale = 1 ORDER BY line, id
"""
INSERT_DOCSTRING = "INSERT INTO docstrings (id, symbol_id, file_id, content, format, parsed_fields) VALUES (?, ?, ?, ?, ?, ?)"
INSERT_COMMENT = """
INSERT INTO inline_comments (id, file_id, symbol_id, line, content, kind, is_rationale) VALUES (?, ?, ?, ?, ?, ?, ?)
"""
DocstringTuple = tuple[int, int | None, int, str, str, str | None]
"""id, symbol_id, file_id, content, format, parsed_fields."""
CommentTuple = tuple[int, int, int | None, int, str, str, int]
"""id, file_id, symbol_id, line, content, kind, is_rationale."""


class SymbolRow(Struct, frozen=True):
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


class NeighborRow(Struct, frozen=True, kw_only=True):
    """A symbol that uses, or is used by, another."""

    symbol: SymbolRow
    direction: str
    """caller: `symbol` uses the one that was asked about; callee: it is used by it."""
    reference_kind: str
    confidence: float


def symbol_from(row: sqlite3.Row) -> SymbolRow:
    """Make a `SymbolRow` from a row that begins with `COLUMNS`."""
    return SymbolRow(*row[:9])


def list_symbols(conn: sqlite3.Connection, file_id: int) -> tuple[SymbolRow, ...]:
    """The symbols of a file by first line, each after the one that encloses it."""
    return tuple(symbol_from(row) for row in conn.execute(OF_FILE, (file_id,)))


def get_symbol(conn: sqlite3.Connection, symbol_id: int) -> SymbolRow | None:
    """The symbol with this id."""
    row = conn.execute(BY_ID, (symbol_id,)).fetchone()
    return None if row is None else symbol_from(row)


def find_symbols(conn: sqlite3.Connection, name: str) -> tuple[SymbolRow, ...]:
    """All symbols of exactly this name, by path and line."""
    return tuple(symbol_from(row) for row in conn.execute(BY_NAME, (name,)))


def list_callers(conn: sqlite3.Connection, symbol_id: int) -> tuple[NeighborRow, ...]:
    """The symbols that use this one, highest confidence first."""
    return _neighbor_rows(conn, symbol_id, "caller", "callee")


def list_callees(conn: sqlite3.Connection, symbol_id: int) -> tuple[NeighborRow, ...]:
    """The symbols that this one uses, highest confidence first."""
    return _neighbor_rows(conn, symbol_id, "callee", "caller")


def count_kinds(conn: sqlite3.Connection) -> tuple[tuple[str, int], ...]:
    """(kind, number of symbols), by kind."""
    return tuple(
        (row[0], row[1])
        for row in conn.execute("SELECT kind, count(*) FROM symbols GROUP BY kind ORDER BY kind")
    )


def first_symbol_id(file_id: int) -> int:
    """The first id reserved for the file's symbols; the range ends before the next file's first."""
    return file_id << PLACE_BITS


def insert_symbols(conn: sqlite3.Connection, symbols: Iterable[SymbolTuple]) -> None:
    """Insert symbols whose ids are unused; a parent comes before its children."""
    conn.executemany(INSERT_SYMBOL, symbols)


def list_rows(conn: sqlite3.Connection, file_id: int) -> list[SymbolTuple]:
    """The file's symbols as they are stored, by place."""
    cursor = conn.cursor()
    cursor.row_factory = None
    return cursor.execute(STORED, (file_id,)).fetchall()


def replace_symbols(
    conn: sqlite3.Connection, stored: Iterable[SymbolTuple], symbols: Sequence[SymbolTuple]
) -> None:
    """Replace what is stored of a file by its symbols; references to an id that stays remain valid."""
    gone = {row[0]: row for row in stored}
    changed, moved = [], []
    for one in symbols:
        before = gone.pop(one[0], None)
        if before is None or (before[3:6], before[9]) != (one[3:6], one[9]):
            changed.append(one)
        elif before != one:
            moved.append((one[2], *one[6:9], one[0]))
    conn.executemany(PUT_SYMBOL, changed)
    # Most symbols of a changed file only move to other lines, which touches no index.
    conn.executemany(MOVE_SYMBOL, moved)
    _delete_symbols(conn, list(gone))


def delete_symbols(conn: sqlite3.Connection, file_id: int) -> None:
    """Delete the file's symbols."""
    _delete_symbols(conn, [one for one, _ in list_symbol_ids(conn, file_id)])


def _delete_symbols(conn: sqlite3.Connection, ids: Sequence[int]) -> None:
    """Delete these symbols of one file; `ids` by place."""
    # Inner symbols first: SQLite follows cascading deletions only a thousand levels deep.
    conn.executemany("DELETE FROM symbols WHERE id = ?", [(one,) for one in reversed(ids)])


def list_symbol_ids(conn: sqlite3.Connection, file_id: int) -> list[tuple[int, str]]:
    """Id and qualified name of the file's symbols, by place."""
    return [(row[0], row[1]) for row in conn.execute(IDS, (file_id,))]


def callables_in(symbols: Iterable[SymbolTuple]) -> dict[str, tuple[str, ...]]:
    """The qualified names of the functions, methods and classes among a file's symbols, by name, in their order."""
    found: dict[str, tuple[str, ...]] = {}
    for _, _, _, name, qualified, kind, *_ in symbols:
        if kind in CALLABLE:
            found[name] = (*found.get(name, ()), qualified)
    return found


def find_unique(conn: sqlite3.Connection, name: str, languages: Sequence[str]) -> tuple[int, int] | None:
    """File id and place of the function, method or class of this name in files of these languages; None unless just one."""
    found = conn.execute(UNIQUE, (name, json.dumps(languages))).fetchall()
    return (found[0][0], found[0][1]) if len(found) == 1 else None


def count_named(conn: sqlite3.Connection, name: str, languages: Sequence[str]) -> int:
    """How many functions, methods and classes have this name in files of these languages."""
    return int(conn.execute(COUNT_NAMED, (name, json.dumps(languages))).fetchone()[0])


def _neighbor_rows(
    conn: sqlite3.Connection, symbol_id: int, direction: str, asked: str
) -> tuple[NeighborRow, ...]:
    rows = conn.execute(NEIGHBORS.format(direction, asked), (symbol_id,))
    return tuple(
        NeighborRow(symbol=symbol_from(row), direction=direction, reference_kind=row[9], confidence=row[10])
        for row in rows
    )


def files_defining(conn: sqlite3.Connection, name: str) -> list[int]:
    """Ids of the files that define a symbol with this unqualified name, sorted."""
    return [
        row[0]
        for row in conn.execute(
            "SELECT DISTINCT file_id FROM symbols WHERE name = ? ORDER BY file_id", (name,)
        )
    ]


class DocstringRow(Struct, frozen=True):
    """The documentation of a symbol, or of a module."""

    id: int
    symbol_id: int | None
    """None for the module's own."""
    file_id: int
    content: str
    """Without quotes or comment marks, dedented."""
    format: str
    """google, numpy, sphinx, jsdoc or plain."""
    parsed_fields: str | None
    """JSON object: parameters, returns, raises; None where the text has none."""


class CommentRow(Struct, frozen=True):
    """A comment that is not documentation."""

    id: int
    file_id: int
    symbol_id: int | None
    """The innermost symbol around it; None at module level."""
    line: int
    """1-based."""
    content: str
    kind: str
    """todo, fixme, hack, note, bug_ref, rationale or general."""
    is_rationale: bool


def list_docstrings(conn: sqlite3.Connection, file_id: int) -> tuple[DocstringRow, ...]:
    """The file's docstrings: the module's first, then in the order of the symbols."""
    return tuple(DocstringRow(*row) for row in conn.execute(DOCSTRINGS, (file_id,)))


def list_rationale(conn: sqlite3.Connection, file_id: int) -> tuple[CommentRow, ...]:
    """The comments of a file that give a reason, by line."""
    return tuple(CommentRow(*row) for row in conn.execute(RATIONALE, (file_id,)))


def insert_docstrings(conn: sqlite3.Connection, docstrings: Iterable[DocstringTuple]) -> None:
    """Insert the docstrings."""
    conn.executemany(INSERT_DOCSTRING, docstrings)


def insert_comments(conn: sqlite3.Connection, comments: Iterable[CommentTuple]) -> None:
    """Insert the comments."""
    conn.executemany(INSERT_COMMENT, comments)


def delete_prose(conn: sqlite3.Connection, file_id: int) -> None:
    """Delete the file's docstrings and comments."""
    conn.execute("DELETE FROM docstrings WHERE file_id = ?", (file_id,))
    conn.execute("DELETE FROM inline_comments WHERE file_id = ?", (file_id,))
