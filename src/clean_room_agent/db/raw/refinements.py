"""Refined contexts, made since a failed attempt showed that something was missing; and what else was done about failures."""

from dataclasses import dataclass

from clean_room_agent.db.raw.task_ids import OF_TASK, task_range
from clean_room_agent.db.rows import Connection, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class RefinementRow:
    """One refinement; `request` and `evidence` are JSON text, `added` are paths and symbols that came in."""

    id: int = 0
    task_id: str
    request: str
    evidence: str
    added: tuple[str, ...]
    timestamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryRow:
    """One decision about a step that did not work; `state` is JSON text."""

    id: int = 0
    task_id: str
    state: str
    rule: str
    action: str
    detail: str = ""
    timestamp: str


REFINEMENTS = Table("refinements", RefinementRow)
RECOVERY_DECISIONS = Table("recovery_decisions", RecoveryRow)


def append_refinement(conn: Connection, row: RefinementRow) -> int:
    """The refinement is stored; its id. One that is (a resumed run) is left as it is."""
    return REFINEMENTS.insert_once(conn, row, "task_id", "request")


def append_recovery_decision(conn: Connection, row: RecoveryRow) -> int:
    """The decision is stored; its id. One that is (a resumed run) is left as it is."""
    return RECOVERY_DECISIONS.insert_once(conn, row, "task_id", "rule", "action")


def list_refinements(conn: Connection, task_id: str) -> tuple[RefinementRow, ...]:
    """All refinements of a task's passes, by id."""
    return REFINEMENTS.select(conn, f"WHERE {OF_TASK} ORDER BY id", task_range(task_id))


def list_recovery_decisions(conn: Connection, task_id: str) -> tuple[RecoveryRow, ...]:
    """All recovery decisions of a task's passes, by id."""
    return RECOVERY_DECISIONS.select(conn, f"WHERE {OF_TASK} ORDER BY id", task_range(task_id))
