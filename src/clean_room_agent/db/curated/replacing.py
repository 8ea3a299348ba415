"""Replaces rows of a table, without touching those that are already right."""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any


def replace_rows(
    conn: sqlite3.Connection,
    table: str,
    columns: Sequence[str],
    where: str,
    parameters: tuple[int, ...],
    wanted: Iterable[tuple[Any, ...]],
) -> None:
    """The rows of the table that `where` selects are the wanted ones, each a value per column."""
    missing = dict.fromkeys(wanted)
    gone = []
    for row in conn.execute(f"SELECT {', '.join(columns)} FROM {table} WHERE {where}", parameters).fetchall():  # noqa: S608 - names of the schema
        if tuple(row) in missing:
            del missing[tuple(row)]
        else:
            gone.append(tuple(row))
    if gone:
        same = " AND ".join(f"{column} IS ?" for column in columns)
        conn.executemany(f"DELETE FROM {table} WHERE {same}", gone)  # noqa: S608
    insert_rows(conn, table, columns, missing)


def insert_rows(
    conn: sqlite3.Connection, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]
) -> None:
    """Insert the rows, each a value per column."""
    marks = ", ".join("?" * len(columns))
    conn.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)  # noqa: S608
