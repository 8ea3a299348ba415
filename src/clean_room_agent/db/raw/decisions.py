"""What became of each candidate of a retrieval, and why."""

from dataclasses import dataclass, field

from clean_room_agent.artifacts.decisions import Judgment, Subject
from clean_room_agent.db.raw.task_ids import OF_TASK, task_range
from clean_room_agent.db.rows import Connection, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRow:
    """One candidate at one stage; `task_id` is the id of the pass. In JSON the parts are flat, as in the table."""

    id: int = 0
    task_id: str
    stage: str
    subject: Subject = field(metadata={"flat": True})
    included: bool
    detail: str = ""
    reason: str
    judgment: Judgment = field(default_factory=Judgment, metadata={"flat": True})
    timestamp: str


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
