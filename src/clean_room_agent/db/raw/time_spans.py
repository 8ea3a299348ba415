"""What the time of a run went to."""

from dataclasses import dataclass

from clean_room_agent.artifacts.time_kinds import TimeKind
from clean_room_agent.db.raw.task_ids import OF_TASK, task_range
from clean_room_agent.db.rows import Connection, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSpanRow:
    """A stretch of time in which the run did one thing; spans may overlap."""

    id: int = 0
    task_id: str
    kind: TimeKind
    detail: str = ""
    began_at: str
    ended_at: str


TIME_SPANS = Table("time_spans", TimeSpanRow)


def append_time_span(conn: Connection, row: TimeSpanRow) -> int:
    """The span is stored; its id."""
    return TIME_SPANS.insert(conn, row)


def list_time_spans(conn: Connection, task_id: str) -> tuple[TimeSpanRow, ...]:
    """All spans of a task, in the order in which they began."""
    return TIME_SPANS.select(conn, f"WHERE {OF_TASK} ORDER BY began_at, id", task_range(task_id))
