"""Limits of an index (files, history), read from the last run without importing the configuration."""

import contextlib
import hashlib
import json
from pathlib import Path
from typing import NamedTuple, Protocol

from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.curated import files
from clean_room_agent.db.rows import Connection

CONFIG_KEY = "config"
VERSION = "1"
"""Raised when what is remembered is no longer checked in the same way."""


class Bounds(Protocol):
    """What `IndexConfig` says, however it was read."""

    @property
    def history(self) -> int:
        """Newest commits to read; merges are not counted."""

    @property
    def max_file_bytes(self) -> int:
        """Larger files are left out."""

    @property
    def pair_bound(self) -> int:
        """Commits that touch more files say nothing of which files belong together."""

    @property
    def lock_timeout(self) -> float:
        """Seconds to wait while another process indexes."""


class RememberedBounds(NamedTuple):
    """Bounds that an earlier run checked."""

    history: int
    max_file_bytes: int
    pair_bound: int
    lock_timeout: float


def digest_of(config: Path) -> str:
    """What tells one text of the configuration file from another; a missing file is an empty one."""
    text = config.read_bytes() if config.exists() else b""
    return hashlib.sha256(VERSION.encode() + text).hexdigest()


def recall(curated: Path, digest: str) -> RememberedBounds | None:
    """The bounds that the last index run read from this very configuration; None where it read another, or there is none.

    Checking the file anew takes longer than finding nothing changed.

    Raises:
        SchemaError: the database is newer than the program, or not ours.
    """
    if not curated.exists():
        return None
    with contextlib.closing(connect_file("curated", curated)) as conn:
        kept = json.loads(files.get_index_state(conn, CONFIG_KEY) or "null")
    return RememberedBounds(*kept[1:]) if kept and kept[0] == digest else None


def remember(conn: Connection, digest: str, bounds: Bounds) -> None:
    """`recall` gives these bounds for the configuration that has this digest."""
    kept = [digest, bounds.history, bounds.max_file_bytes, bounds.pair_bound, bounds.lock_timeout]
    files.put_index_state(conn, CONFIG_KEY, json.dumps(kept))
