"""Lexical search: how often a term stands in each field of a file, and how long the fields are."""

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

OF_TERM = """
SELECT file_id, path_tf, symbols_tf, docstrings_tf, comments_tf, body_tf, history_tf FROM postings WHERE term = ?
ORDER BY file_id
"""
LENGTHS = """
SELECT file_id, path_len, symbols_len, docstrings_len, comments_len, body_len, history_len FROM file_lengths
ORDER BY file_id
"""
OF_TERM_AND_FILE = """
SELECT path_tf, symbols_tf, docstrings_tf, comments_tf, body_tf, history_tf FROM postings
WHERE term = ? AND file_id = ?
"""
OF_FILE = """
SELECT term, path_tf, symbols_tf, docstrings_tf, comments_tf, body_tf, history_tf FROM postings WHERE file_id = ?
ORDER BY term
"""
INSERT_POSTING = """
INSERT INTO postings (term, file_id, path_tf, symbols_tf, docstrings_tf, comments_tf, body_tf, history_tf)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
INSERT_LENGTHS = """
INSERT INTO file_lengths (file_id, path_len, symbols_len, docstrings_len, comments_len, body_len, history_len)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""
FIELDS = ("path", "symbols", "docstrings", "comments", "body", "history")
FieldValues = tuple[float, float, float, float, float, float]
"""One number for each of `FIELDS`."""
PostingTuple = tuple[str, int, float, float, float, float, float, float]
"""term, file_id, then a frequency for each of `FIELDS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldLengths:
    """The fields' lengths of all files, and their means over the files."""

    by_file: dict[int, FieldValues]
    mean: FieldValues


def read_lengths(conn: sqlite3.Connection) -> FieldLengths:
    """The lengths of all files."""
    by_file: dict[int, FieldValues] = {row[0]: tuple(row[1:]) for row in conn.execute(LENGTHS)}
    count = max(len(by_file), 1)
    sums = [sum(column) for column in zip(*by_file.values(), strict=True)] or [0.0] * len(FIELDS)
    path, symbols, docstrings, comments, body, history = (total / count for total in sums)
    return FieldLengths(by_file=by_file, mean=(path, symbols, docstrings, comments, body, history))


def read_postings(
    conn: sqlite3.Connection, term: str
) -> Iterator[tuple[int, float, float, float, float, float, float]]:
    """The files that hold the term, by id, each with its frequency in each of `FIELDS`."""
    cursor = conn.cursor()
    cursor.row_factory = None  # plain tuples: a common term has thousands of rows
    return iter(cursor.execute(OF_TERM, (term,)))


def read_posting(conn: sqlite3.Connection, term: str, file_id: int) -> FieldValues:
    """The term's frequency in each of `FIELDS` of one file."""
    row = conn.execute(OF_TERM_AND_FILE, (term, file_id)).fetchone()
    return (0, 0, 0, 0, 0, 0) if row is None else tuple(row)


def read_file_postings(conn: sqlite3.Connection, file_id: int) -> dict[str, FieldValues]:
    """The terms of one file, each with its frequency in each of `FIELDS`."""
    return {row[0]: tuple(row[1:]) for row in conn.execute(OF_FILE, (file_id,))}


def insert_postings(conn: sqlite3.Connection, postings: Iterable[PostingTuple]) -> None:
    """The postings are in the database; sorted by term and file they go in quickest."""
    conn.executemany(INSERT_POSTING, postings)


def insert_lengths(
    conn: sqlite3.Connection, lengths: Iterable[tuple[int, float, float, float, float, float, float]]
) -> None:
    """The lengths of the files are in the database."""
    conn.executemany(INSERT_LENGTHS, lengths)


def delete_postings(conn: sqlite3.Connection, file_ids: Iterable[int]) -> None:
    """No posting and no length of these files is left."""
    for file_id in file_ids:
        conn.execute("DELETE FROM postings WHERE file_id = ?", (file_id,))
        conn.execute("DELETE FROM file_lengths WHERE file_id = ?", (file_id,))
