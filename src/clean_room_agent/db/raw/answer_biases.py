"""Measurements of a model's bias: what it answers when it is asked about nothing."""

from dataclasses import dataclass

from clean_room_agent.db.rows import Connection, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerBiasRow:
    """One measurement."""

    id: int = 0
    base_url: str
    model: str
    model_digest: str
    prompt: str
    prompt_hash: str
    shares: tuple[tuple[str, float], ...]
    call_id: int
    timestamp: str


ANSWER_BIASES = Table("answer_biases", AnswerBiasRow)


def append_bias(conn: Connection, row: AnswerBiasRow) -> int:
    """The measurement is stored; its id."""
    return ANSWER_BIASES.insert(conn, row)


def newest_bias(
    conn: Connection, *, base_url: str, model: str, model_digest: str, prompt: str, prompt_hash: str
) -> AnswerBiasRow | None:
    """The last measurement of this model with this prompt."""
    return ANSWER_BIASES.first(
        conn,
        "WHERE base_url = ? AND model = ? AND model_digest = ? AND prompt = ? AND prompt_hash = ? ORDER BY id DESC",
        (base_url, model, model_digest, prompt, prompt_hash),
    )
