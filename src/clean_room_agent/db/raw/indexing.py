"""Runs of the indexer, and descriptions of files that a model wrote for `cra enrich`."""

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from clean_room_agent.db.rows import Connection, Table
from clean_room_agent.json_values import to_json

IndexStatus = Literal["complete", "partial", "failed"]
OF_INDEX_RUN = "index_run:"
"""The prefix of an index run's id in an event that belongs to it instead of a task."""
GENERATED = "generated"
"""The kind of event that holds, as JSON, (path, what it is) of each folder that an index run left out."""
INSERT_EVENT = "INSERT INTO events (task_id, kind, detail, timestamp) VALUES (?, ?, ?, ?)"
NEWEST = "WHERE id IN (SELECT max(id) FROM enrichment_outputs GROUP BY path, content_hash) ORDER BY path, id"
BY_ID = "WHERE id IN (SELECT value FROM json_each(?)) ORDER BY path, id"


class IndexRunRow(Struct, frozen=True, kw_only=True):
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


def append_index_run(conn: Connection, row: IndexRunRow, generated: Sequence[tuple[str, str]] = ()) -> int:
    """Insert the run and return its id.

    `generated`: folders that were left out as generated, and what each is; stored as an event of the run.
    """
    run_id = INDEX_RUNS.insert(conn, row)
    if generated:
        import json  # noqa: PLC0415 - few runs leave folders out; msgspec refuses names that are not UTF-8

        detail = json.dumps(generated)
        conn.execute(INSERT_EVENT, (f"{OF_INDEX_RUN}{run_id}", GENERATED, detail, row.timestamp))
    return run_id


class DescriptionRow(Struct, frozen=True, kw_only=True):
    """A description without the long texts that it was made from."""

    id: int = 0
    path: str
    content_hash: str
    purpose: str | None
    module: str | None
    domain: str | None
    concepts: tuple[str, ...] = ()
    public_api_surface: tuple[str, ...] = ()
    complexity_notes: str | None = None
    promoted: bool = False


class EnrichmentRow(DescriptionRow, frozen=True, kw_only=True):
    """One description; `file_id` is its id in curated.sqlite at that time."""

    file_id: int
    model: str
    raw_prompt: str
    raw_response: str
    timestamp: str


ENRICHMENT_OUTPUTS = Table("enrichment_outputs", EnrichmentRow)
append_enrichment = ENRICHMENT_OUTPUTS.insert
DESCRIPTIONS = Table("enrichment_outputs", DescriptionRow)


def mark_promoted(conn: Connection, enrichment_ids: Iterable[int]) -> None:
    """Mark these descriptions as promoted into the index."""
    for enrichment_id in enrichment_ids:
        ENRICHMENT_OUTPUTS.update(conn, enrichment_id, promoted=True)


def list_descriptions(conn: Connection) -> tuple[DescriptionRow, ...]:
    """The newest description of each version of each file, by path; of one path, newest last."""
    return DESCRIPTIONS.select(conn, NEWEST)


def get_descriptions(conn: Connection, ids: Iterable[int]) -> tuple[DescriptionRow, ...]:
    """These descriptions, by path."""
    return DESCRIPTIONS.select(conn, BY_ID, (to_json(sorted(ids)),))
