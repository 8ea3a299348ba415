"""Runs of the indexer."""

import json
from collections.abc import Sequence
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
INSERT = """
INSERT INTO index_runs (repo_path, files_scanned, files_changed, files_deleted, symbols, commits, duration_ms, status,
failures, timestamp) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
OF_INDEX_RUN = "index_run:"
"""Before a run's id, where an event belongs to it instead of a task."""
GENERATED = "generated"
"""The kind of event that holds, as JSON, (path, what it is) of each folder that an index run left out."""
INSERT_EVENT = "INSERT INTO events (task_id, kind, detail, timestamp) VALUES (?, ?, ?, ?)"


def append_index_run(conn: Connection, row: IndexRunRow, generated: Sequence[tuple[str, str]] = ()) -> int:
    """The run is stored; its id. `generated`: folders that it left out and what each is, kept as an event of the run."""
    # Written out: an index that found nothing changed is too short for what `Table` imports to encode a row.
    cursor = conn.execute(
        INSERT,
        (
            row.repo_path,
            row.files_scanned,
            row.files_changed,
            row.files_deleted,
            row.symbols,
            row.commits,
            row.duration_ms,
            row.status,
            json.dumps(row.failures),
            row.timestamp,
        ),
    )
    run_id = cursor.lastrowid or 0
    if generated:
        detail = json.dumps(generated)
        conn.execute(INSERT_EVENT, (f"{OF_INDEX_RUN}{run_id}", GENERATED, detail, row.timestamp))
    return run_id
