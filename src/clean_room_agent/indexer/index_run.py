"""Settings and outcome of one index run, shared by full builds and updates."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from msgspec import Struct

from clean_room_agent.db.curated import files
from clean_room_agent.db.rows import Connection
from clean_room_agent.errors import IndexingError
from clean_room_agent.git.repository import Listing
from clean_room_agent.indexer.bounds import Bounds, remember

VERSION = "7"
"""Raised whenever the same files would give other rows: the next `cra index` is then a full one."""
SCANNED_KEY = "scanned_at_ns"
SETTINGS_KEY = "settings"
MAX_BYTES_KEY = "max_file_bytes"


class IndexRun(Struct, frozen=True, kw_only=True):
    """Settings of one index run."""

    listing: Listing
    bounds: Bounds
    jobs: int
    continue_on_error: bool
    line_counts: bool
    progress: Callable[[int, int], None]
    now_ns: int
    digest: str
    """Of the configuration that the bounds come from; "" where they come from elsewhere."""

    @property
    def settings(self) -> str:
        """Everything the rows depend on, apart from the files and the history."""
        bounds = self.bounds
        return f"{VERSION} {bounds.history} {bounds.max_file_bytes} {bounds.pair_bound}"


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
