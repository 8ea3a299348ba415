"""What was decided on the way to a plan."""

from dataclasses import dataclass, field

from clean_room_agent.artifacts.decisions import Judgment
from clean_room_agent.db.raw.task_ids import OF_TASK, task_range
from clean_room_agent.db.rows import Connection, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDecisionRow:
    """One yes or no; `task_id` is the id of the pass."""

    id: int = 0
    task_id: str
    question: str
    item: str
    yes: bool
    reason: str
    judgment: Judgment = field(default_factory=Judgment, metadata={"flat": True})
    timestamp: str


PLAN_DECISIONS = Table("plan_decisions", PlanDecisionRow)


def append_plan_decisions(conn: Connection, rows: tuple[PlanDecisionRow, ...]) -> tuple[int, ...]:
    """All decisions are stored, in order; their ids. One that is (a resumed run) is left as it is."""
    return tuple(
        PLAN_DECISIONS.insert_once(conn, row, "task_id", "question", "item", "reason", "call_id")
        for row in rows
    )


def list_plan_decisions(conn: Connection, task_id: str) -> tuple[PlanDecisionRow, ...]:
    """All such decisions of a task and its passes (or of one pass), by id."""
    return PLAN_DECISIONS.select(conn, f"WHERE {OF_TASK} ORDER BY id", task_range(task_id))
