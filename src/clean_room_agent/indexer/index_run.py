"""Settings and outcome of one index run: limits, what is remembered of them, and what the parts of a run share."""

import contextlib
import hashlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from msgspec import Struct

from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.curated import files
from clean_room_agent.db.rows import Connection
from clean_room_agent.errors import IndexingError
from clean_room_agent.git.repository import Listing
from clean_room_agent.json_values import from_json, to_json
from clean_room_agent.languages.registry import BY_SUFFIX
from clean_room_agent.safe_open import open_named

if TYPE_CHECKING:  # importing the configuration takes longer than finding out that nothing changed
    from clean_room_agent.indexer.index_config import IndexConfig

VERSION = "8"
"""Raised whenever the same files would give other rows: the next `cra index` is then a full one."""
SCANNED_KEY = "scanned_at_ns"
SETTINGS_KEY = "settings"
MAX_BYTES_KEY = "max_file_bytes"
CONFIG_KEY = "config"
CONFIG_VERSION = "1"
"""Raised when a configuration is no longer checked in the same way, so that what is remembered of it does not count."""


class RememberedBounds(NamedTuple):
    """Limits on what an index covers, as an earlier run has validated and stored them; see `IndexConfig`."""

    history: int
    max_file_bytes: int
    pair_bound: int
    lock_timeout: float


Bounds: TypeAlias = "IndexConfig | RememberedBounds"


class IndexRun(Struct, frozen=True, kw_only=True):
    """Settings of one index run."""

    listing: Listing
    bounds: Bounds
    jobs: int
    continue_on_error: bool
    progress: Callable[[int, int], None]
    now_ns: int
    digest: str
    """Of the configuration that the bounds come from; "" where they come from elsewhere."""

    @property
    def settings(self) -> str:
        """Everything the rows depend on, apart from the files and the history."""
        bounds = self.bounds
        parsed = " ".join(sorted(BY_SUFFIX))
        return f"{VERSION} {bounds.history} {bounds.max_file_bytes} {bounds.pair_bound} {parsed}"


class Failed(NamedTuple):
    """A file that should be in the index but cannot be read."""

    path: str
    message: str


class IndexOutcome(NamedTuple):
    """Counts and failures of one index run."""

    scanned: int
    changed: int
    deleted: int
    failures: list[Failed]
    left_out: Mapping[str, str]
    """Why files are not in the index, as the scan found, by path."""


def put_repo(conn: Connection, run: IndexRun) -> int:
    """Store the description of the index's only repository, and return its id."""
    stamp = datetime.fromtimestamp(run.now_ns / 1e9, tz=UTC).isoformat()
    listing = run.listing
    return files.put_repo(conn, path=str(listing.top), remote_url=listing.remote_url, indexed_at=stamp)


def put_states(conn: Connection, run: IndexRun) -> None:
    """Store what the index was built with, and when its files were scanned."""
    files.put_index_state(conn, SETTINGS_KEY, run.settings)
    files.put_index_state(conn, MAX_BYTES_KEY, str(run.bounds.max_file_bytes))
    files.put_index_state(conn, SCANNED_KEY, str(run.now_ns))
    if run.digest:
        remember(conn, run.digest, run.bounds)


def failure(failed: Failed) -> IndexingError:
    """Make the error for a file that cannot be read."""
    return IndexingError(
        f"{failed.path} {failed.message}", hint="fix it, or leave it out with --continue-on-error"
    )


def digest_of(config: Path) -> str:
    """Hash the configuration file together with the program's version; a missing file counts as empty."""
    text = b""
    if config.exists():
        with open_named(config) as file:
            text = file.read()
    return hashlib.sha256(CONFIG_VERSION.encode() + text).hexdigest()


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
