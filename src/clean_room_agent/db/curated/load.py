"""A first index, loaded into a new file as fast as can be: nobody else sees it before it is whole."""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from clean_room_agent.db.connection import connect_file, remove_database, transaction

INDEXES = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL ORDER BY name"


@contextlib.contextmanager
def new_database(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a new database that stands at `path` when the block ends without an exception, else nowhere.

    Nothing may stand at `path` before. No journal, no foreign keys, no indexes but the primary keys while it is filled.
    """
    temporary = path.with_name(f"{path.name}.new")
    remove_database(temporary)
    try:
        with contextlib.closing(connect_file("curated", temporary)) as conn:
            for pragma in (
                "journal_mode = OFF",
                "synchronous = OFF",
                "foreign_keys = OFF",
                "cache_size = -64000",
            ):
                conn.execute(f"PRAGMA {pragma}")
            indexes = [(row[0], row[1]) for row in conn.execute(INDEXES)]
            with transaction(conn):
                for name, _ in indexes:
                    conn.execute(f'DROP INDEX "{name}"')
                yield conn
                for _, statement in indexes:
                    conn.execute(statement)
            conn.execute("PRAGMA journal_mode = WAL")
        _replace(temporary, path)
    finally:
        remove_database(temporary)


def _replace(temporary: Path, path: Path) -> None:
    _sync(temporary)
    # A journal that outlived its database would be played into the new one.
    remove_database(path)
    temporary.replace(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
