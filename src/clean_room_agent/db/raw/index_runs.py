"""Runs of the indexer."""

from dataclasses import dataclass
from typing import Literal

from clean_room_agent.db.rows import Connection, Table

IndexStatus = Literal["complete", "partial", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRunRow:
    """One run; `failures` are pairs of path and message."""

    id: int = 0
    repo_path: str
    files_scanned: int
    files_changed: int
    files_deleted: int = 0
    symbols: int = 0
    commits: int = 0
    duration_ms: int
    status: IndexStatus
    failures: tuple[tuple[str, str], ...] = ()
    timestamp: str


INDEX_RUNS = Table("index_runs", IndexRunRow)


def append_index_run(conn: Connection, row: IndexRunRow) -> int:
    """The run is stored; its id."""
    return INDEX_RUNS.insert(conn, row)


def list_index_runs(conn: Connection, *, limit: int = 100) -> tuple[IndexRunRow, ...]:
    """The newest runs, newest first."""
    return INDEX_RUNS.select(conn, "ORDER BY id DESC LIMIT ?", (limit,))
