"""What a model said of a file when `cra enrich` asked."""

from dataclasses import dataclass

from clean_room_agent.db.rows import Connection, Table


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


ENRICHMENT_OUTPUTS = Table("enrichment_outputs", EnrichmentRow)


def append_enrichment(conn: Connection, row: EnrichmentRow) -> int:
    """The description is stored; its id."""
    return ENRICHMENT_OUTPUTS.insert(conn, row)


def mark_promoted(conn: Connection, enrichment_id: int) -> None:
    """The record says that this description was promoted."""
    ENRICHMENT_OUTPUTS.update(conn, enrichment_id, promoted=True)


def list_enrichments(conn: Connection) -> tuple[EnrichmentRow, ...]:
    """Every description, by path, the newest of each last."""
    return ENRICHMENT_OUTPUTS.select(conn, "ORDER BY path, id")
