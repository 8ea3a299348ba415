"""What a model said of a file when `cra enrich` asked."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from clean_room_agent.db.rows import Connection, Table

NEWEST = "WHERE id IN (SELECT max(id) FROM enrichment_outputs GROUP BY path, content_hash) ORDER BY path, id"

BY_ID = "WHERE id IN (SELECT value FROM json_each(?)) ORDER BY path, id"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrichmentRow:
    """One description; `file_id` is that of curated.sqlite at the time."""

    id: int = 0
    file_id: int
    path: str
    content_hash: str
    model: str
    purpose: str | None
    module: str | None
    domain: str | None
    concepts: tuple[str, ...] = ()
    public_api_surface: tuple[str, ...] = ()
    complexity_notes: str | None = None
    raw_prompt: str
    raw_response: str
    promoted: bool = False
    timestamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DescriptionRow:
    """A description without the texts that it came from, which are long."""

    id: int
    path: str
    content_hash: str
    purpose: str | None
    module: str | None
    domain: str | None
    concepts: tuple[str, ...]
    public_api_surface: tuple[str, ...]
    complexity_notes: str | None
    promoted: bool


ENRICHMENT_OUTPUTS = Table("enrichment_outputs", EnrichmentRow)
DESCRIPTIONS = Table("enrichment_outputs", DescriptionRow)


def append_enrichment(conn: Connection, row: EnrichmentRow) -> int:
    """The description is stored; its id."""
    return ENRICHMENT_OUTPUTS.insert(conn, row)


def mark_promoted(conn: Connection, enrichment_ids: Iterable[int]) -> None:
    """The record says that these descriptions were promoted."""
    for enrichment_id in enrichment_ids:
        ENRICHMENT_OUTPUTS.update(conn, enrichment_id, promoted=True)


def list_descriptions(conn: Connection) -> tuple[DescriptionRow, ...]:
    """The newest description of each content of each path, by path, the newest of a path last."""
    return DESCRIPTIONS.select(conn, NEWEST)


def get_descriptions(conn: Connection, ids: Iterable[int]) -> tuple[DescriptionRow, ...]:
    """These descriptions, by path."""
    return DESCRIPTIONS.select(conn, BY_ID, (json.dumps(sorted(ids)),))
