"""An index in memory with three files and no more."""

import contextlib
import sqlite3
from collections.abc import Iterator

import pytest

from clean_room_agent.db.connection import connect_memory
from clean_room_agent.db.curated import files
from clean_room_agent.db.curated.files import NewFileRow

PATHS = ("a.py", "b.py", "web/c.ts")


@pytest.fixture
def index() -> Iterator[sqlite3.Connection]:
    """Files 1, 2 and 3 are `PATHS`; foreign keys hold."""
    with contextlib.closing(connect_memory("curated")) as conn:
        conn.execute("PRAGMA foreign_keys = ON")
        repo = files.put_repo(conn, path="/r", remote_url=None, indexed_at="2026-01-01T00:00:00+00:00")
        rows = [
            NewFileRow(
                path, "python" if path.endswith(".py") else "typescript", f"hash {path}", 10, 5, 7, None
            )
            for path in PATHS
        ]
        files.insert_files(conn, repo, enumerate(rows, start=1))
        yield conn
