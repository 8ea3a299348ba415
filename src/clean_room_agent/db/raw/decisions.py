"""What became of each candidate of a retrieval, and why."""

from dataclasses import dataclass

from clean_room_agent.db.raw.task_ids import OF_TASK, task_range
from clean_room_agent.db.rows import Connection, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRow:
    """One candidate at one stage; `task_id` is the id of the pass."""

    id: int = 0
    task_id: str
    stage: str
    file_id: int | None
    tier: int
    included: bool
    reason: str
    timestamp: str
    path: str
    symbol: str | None = None
    detail: str = ""
    score: float | None = None
    call_id: int | None = None
    confidence: float | None = None
    probability: float | None = None
    neutral: float | None = None
    calibrated: float | None = None


DECISIONS = Table("retrieval_decisions", DecisionRow)


def append_decisions(conn: Connection, rows: tuple[DecisionRow, ...]) -> tuple[int, ...]:
    """All decisions are stored, in order; their ids."""
    return tuple(DECISIONS.insert(conn, row) for row in rows)


def list_decisions(conn: Connection, task_id: str) -> tuple[DecisionRow, ...]:
    """All decisions of a task and its passes (or of one pass), by id."""
    return DECISIONS.select(conn, f"WHERE {OF_TASK} ORDER BY id", task_range(task_id))


def list_decisions_of_pass(conn: Connection, pass_id: str) -> tuple[DecisionRow, ...]:
    """The decisions of exactly this pass, by id."""
    return DECISIONS.select(conn, "WHERE task_id = ? ORDER BY id", (pass_id,))
