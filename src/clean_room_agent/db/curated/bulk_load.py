"""Bulk loading of a new index: several processes write one draft database, which then replaces the old one."""

import contextlib
import fcntl
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote

from clean_room_agent.db.connection import (
    backup_into,
    connect_bare,
    connect_file,
    remove_database,
    transaction,
)
from clean_room_agent.folders import flock

INDEXES = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL ORDER BY name"
BULK = (
    "journal_mode = OFF",
    "synchronous = OFF",
    "foreign_keys = OFF",
    "cache_size = -32000",
    "temp_store = MEMORY",
)

DRAFT = r"(\..*)?\.new(-journal|-wal|-shm|\.lock)?"
CARRY = (
    "INSERT INTO adapter_metadata SELECT * FROM old.adapter_metadata",
    """
    INSERT INTO file_metadata
    SELECT f.id, m.purpose, m.module, m.domain, m.concepts, m.public_api_surface, m.complexity_notes
    FROM old.file_metadata m JOIN old.files o ON o.id = m.file_id
    JOIN files f ON f.repo_id = (SELECT min(id) FROM repos) AND f.path = o.path AND f.content_hash = o.content_hash
    """,
)
CHANGED = "SELECT count(*) FROM (SELECT path, content_hash FROM files EXCEPT SELECT path, content_hash FROM old.files)"
GONE = "SELECT count(*) FROM (SELECT path FROM old.files EXCEPT SELECT path FROM files)"


class IndexDraft:
    """A database under construction. The object survives a fork; connections do not, so each process opens its own."""

    def __init__(self, path: Path) -> None:
        """`path` must be unique to this run: a worker that outlived an earlier run must not find another draft there."""
        self._path = path
        self._lock = path.with_name(f"{path.name}.lock")
        self._indexes: dict[str, str] = {}

    def create(self) -> None:
        """Create the file with all tables but no indexes."""
        with contextlib.closing(connect_file("curated", self._path)) as conn:
            conn.execute("PRAGMA journal_mode = OFF")
            self._indexes = {row[0]: row[1] for row in conn.execute(INDEXES)}
            for name in self._indexes:
                conn.execute(f'DROP INDEX "{name}"')

    def connect(self) -> sqlite3.Connection:
        """Open this process's connection for bulk writing inside `writing`; the draft must have been created.

        Raises:
            RecordError: it is gone because another run has started since.
        """
        conn = connect_bare(self._path)
        for pragma in BULK:
            conn.execute(f"PRAGMA {pragma}")
        return conn

    @contextlib.contextmanager
    def writing(self, conn: sqlite3.Connection) -> Iterator[None]:
        """Run the block in one transaction; other processes wait for it without polling."""
        handle = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            flock(handle, fcntl.LOCK_EX, self._lock)
            with transaction(conn):
                yield
        finally:
            os.close(handle)

    def create_indexes(
        self, conn: sqlite3.Connection, names: Iterable[str] | None = None, *, without: tuple[str, ...] = ()
    ) -> None:
        """Create the named indexes, or all missing ones except those of the tables in `without`."""
        wanted = sorted(self._indexes) if names is None else names
        for name in [one for one in wanted if not one.startswith(without)] if without else wanted:
            conn.execute(self._indexes.pop(name))

    def carry_over(self, conn: sqlite3.Connection, old: Path) -> tuple[int, int]:
        """Count files that are new or changed compared with the old database, and files that are gone.

        What cannot be derived again is copied: adapters, and descriptions of unchanged files.
        """
        conn.execute("ATTACH ? AS old", (f"file:{quote(os.fspath(old))}?mode=ro",))
        for statement in CARRY:
            conn.execute(statement)
        changed, gone = (int(conn.execute(query).fetchone()[0]) for query in (CHANGED, GONE))
        conn.execute("DETACH old")
        return changed, gone

    def publish(self, path: Path) -> None:
        """Move the draft to `path`, or copy its content into the database that is already there."""
        with contextlib.closing(connect_bare(self._path)) as conn:
            if path.exists():
                backup_into(conn, path)
                return
            conn.execute("PRAGMA journal_mode = WAL")
        _sync_path(self._path)
        # SQLite would replay a journal that outlived its database into the new one.
        remove_database(path)
        self._path.replace(path)
        _sync_path(path.parent)

    def remove(self) -> None:
        """Delete the draft's files."""
        remove_database(self._path)
        self._lock.unlink(missing_ok=True)


def remove_draft(path: Path) -> None:
    """Delete drafts of the database at `path` whose processes were killed; the caller holds its lock."""
    for name in os.listdir(path.parent):  # noqa: PTH208 - names alone
        if name.startswith(path.name) and re.fullmatch(DRAFT, name.removeprefix(path.name)):
            path.with_name(name).unlink(missing_ok=True)


@contextlib.contextmanager
def new_draft(path: Path) -> Iterator[IndexDraft]:
    """Provide a draft of the database at `path`, not created yet; unless published, it is deleted after the block."""
    draft = IndexDraft(path.with_name(f"{path.name}.{os.urandom(4).hex()}.new"))
    try:
        yield draft
    finally:
        draft.remove()


def _sync_path(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
