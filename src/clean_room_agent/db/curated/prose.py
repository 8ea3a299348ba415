"""Docstrings and comments."""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

DOCSTRINGS = """
SELECT id, symbol_id, file_id, content, format, parsed_fields FROM docstrings WHERE file_id = ?
ORDER BY symbol_id IS NOT NULL, symbol_id, id
"""
COMMENTS = """
SELECT id, file_id, symbol_id, line, content, kind, is_rationale FROM inline_comments WHERE file_id = ?
ORDER BY line, id
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


@dataclass(frozen=True, slots=True, kw_only=True)
class DocstringRow:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentRow:
    """A comment that documents nothing."""

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
    """The file's documentation: the module's first, then in the order of the symbols."""
    return tuple(
        DocstringRow(
            id=row[0], symbol_id=row[1], file_id=row[2], content=row[3], format=row[4], parsed_fields=row[5]
        )
        for row in conn.execute(DOCSTRINGS, (file_id,))
    )


def list_rationale(conn: sqlite3.Connection, file_id: int) -> tuple[CommentRow, ...]:
    """The comments of a file that give a reason, by line."""
    return tuple(_comment(row) for row in conn.execute(RATIONALE, (file_id,)))


def insert_docstrings(conn: sqlite3.Connection, docstrings: Iterable[DocstringTuple]) -> None:
    """The documentation is in the database."""
    conn.executemany(INSERT_DOCSTRING, docstrings)


def insert_comments(conn: sqlite3.Connection, comments: Iterable[CommentTuple]) -> None:
    """The comments are in the database."""
    conn.executemany(INSERT_COMMENT, comments)


def delete_prose(conn: sqlite3.Connection, file_id: int) -> None:
    """The file's documentation and comments are gone."""
    conn.execute("DELETE FROM docstrings WHERE file_id = ?", (file_id,))
    conn.execute("DELETE FROM inline_comments WHERE file_id = ?", (file_id,))


def _comment(row: sqlite3.Row) -> CommentRow:
    return CommentRow(
        id=row[0],
        file_id=row[1],
        symbol_id=row[2],
        line=row[3],
        content=row[4],
        kind=row[5],
        is_rationale=bool(row[6]),
    )
