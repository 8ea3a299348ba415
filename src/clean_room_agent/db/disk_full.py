"""Telling a full disk from other trouble with a database: SQLite says it in several ways, some of them unclear."""

import errno
import os
import shutil
import sqlite3
from pathlib import Path

LITTLE = 1 << 20
"""Bytes; where fewer are free, an unexplained failure to read or write is put down to that."""
FULL = (sqlite3.SQLITE_FULL,)
UNEXPLAINED = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
BROKEN = (*FULL, *UNEXPLAINED, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_NOMEM)
"""What is wrong with the machine, not with what was asked."""


def code_of(error: BaseException) -> int:
    """SQLite's primary code; 0 where the error is not SQLite's."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def file_of(conn: sqlite3.Connection) -> Path:
    """The file that the connection is open on."""
    return Path(conn.execute("PRAGMA database_list").fetchone()[2])


def free_space_hint(error: BaseException, path: Path) -> str:
    """What to do where the disk that holds `path` is full, or so nearly that this explains the error; else ""."""
    free = shutil.disk_usage(next(place for place in (path, *path.parents) if place.exists())).free
    full = code_of(error) in FULL or (
        isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}
    )
    if not full and not (code_of(error) in UNEXPLAINED and free < LITTLE):
        return ""
    return f"make room: {free // 1024:,} kB are left on the disk that holds {os.fspath(path)}; then go on"
