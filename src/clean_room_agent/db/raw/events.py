"""What happens to a run beyond its passes: warnings, resumption, results applied or discarded."""

from dataclasses import dataclass

from clean_room_agent.db.raw.task_ids import OF_TASK, task_range
from clean_room_agent.db.rows import Connection, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """One event; `detail` is plain words, or JSON text where the kind has fields."""

    id: int = 0
    task_id: str
    kind: str
    detail: str = ""
    timestamp: str


EVENTS = Table("events", EventRow)


def append_event(conn: Connection, row: EventRow) -> int:
    """The event is stored; its id."""
    return EVENTS.insert(conn, row)


def append_event_once(conn: Connection, row: EventRow) -> int:
    """The event is stored, unless the task or pass has the same; its id."""
    return EVENTS.insert_once(conn, row, "task_id", "kind", "detail")


def list_events(conn: Connection, task_id: str) -> tuple[EventRow, ...]:
    """All events of a task and its passes, by id."""
    return EVENTS.select(conn, f"WHERE {OF_TASK} ORDER BY id", task_range(task_id))
