"""Proofs that a server refuses a prompt beyond its window."""

from dataclasses import dataclass

from clean_room_agent.db.rows import Connection, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowProofRow:
    """One proof."""

    id: int = 0
    provider: str
    base_url: str
    model: str
    model_digest: str
    window: int
    call_id: int
    timestamp: str


WINDOW_PROOFS = Table("window_proofs", WindowProofRow)


def append_proof(conn: Connection, row: WindowProofRow) -> int:
    """The proof is stored; its id."""
    return WINDOW_PROOFS.insert(conn, row)


def newest_proof(
    conn: Connection, *, provider: str, base_url: str, model: str, model_digest: str, window: int
) -> WindowProofRow | None:
    """The last proof of this server with this model and window."""
    return WINDOW_PROOFS.first(
        conn,
        "WHERE provider = ? AND base_url = ? AND model = ? AND model_digest = ? AND window = ? ORDER BY id DESC",
        (provider, base_url, model, model_digest, window),
    )
