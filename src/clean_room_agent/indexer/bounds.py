"""Limits of an index (files, history), read from the last run without importing the configuration."""

import contextlib
import hashlib
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.curated import files
from clean_room_agent.db.rows import Connection
from clean_room_agent.json_values import from_json, to_json
from clean_room_agent.safe_open import open_named

CONFIG_KEY = "config"
VERSION = "1"
"""Raised when what is remembered is no longer checked in the same way."""


class Bounds(Protocol):
    """Limits on what an index covers; `IndexConfig` and `RememberedBounds` both satisfy it."""

    @property
    def history(self) -> int:
        """Number of newest commits to read, not counting merges."""

    @property
    def max_file_bytes(self) -> int:
        """Files larger than this are not indexed."""

    @property
    def pair_bound(self) -> int:
        """A commit that touches more files than this says nothing about which files belong together."""

    @property
    def lock_timeout(self) -> float:
        """Seconds to wait while another process is indexing the repository."""


class RememberedBounds(NamedTuple):
    """Bounds that an earlier run has validated and stored."""

    history: int
    max_file_bytes: int
    pair_bound: int
    lock_timeout: float


def digest_of(config: Path) -> str:
    """Hash the configuration file together with the program's version; a missing file counts as empty."""
    text = b""
    if config.exists():
        with open_named(config) as file:
            text = file.read()
    return hashlib.sha256(VERSION.encode() + text).hexdigest()


def recall(curated: Path, digest: str) -> RememberedBounds | None:
    """Return the bounds stored by the last index run, or None unless it read a configuration with this digest.

    This saves parsing and validating the file, which takes longer than finding out that nothing changed.

    Raises:
        SchemaError: the database is newer than the program, or is not one of ours.
    """
    if not curated.exists():
        return None
    with contextlib.closing(connect_file("curated", curated)) as conn:
        kept = from_json(files.get_index_state(conn, CONFIG_KEY) or "[]", list[Any])
    return RememberedBounds(*kept[1:]) if kept and kept[0] == digest else None


def remember(conn: Connection, digest: str, bounds: Bounds) -> None:
    """Store the bounds for `recall`, under the digest of the configuration they came from."""
    kept = [digest, bounds.history, bounds.max_file_bytes, bounds.pair_bound, bounds.lock_timeout]
    files.put_index_state(conn, CONFIG_KEY, to_json(kept))
