"""One row for every pass: written when it begins, its outcome when it ends."""

from dataclasses import dataclass

from clean_room_agent.artifacts.tasks import Mode
from clean_room_agent.db.raw.task_ids import OF_TASK, task_range
from clean_room_agent.db.rows import Connection, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRunRow:
    """One pass; `task_id` is the pass's id. What has no value yet is None."""

    id: int = 0
    task_id: str
    repo_path: str
    mode: Mode
    execute_model: str
    context_window: int
    reserved_tokens: int
    stages: str
    plan_artifact: str | None = None
    success: bool | None = None
    total_tokens: int | None = None
    total_latency_ms: int | None = None
    final_diff: str | None = None
    final_plan: str | None = None
    detail: str = ""
    completed_at: str | None = None
    timestamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRunOutcome:
    """How a pass ended."""

    success: bool
    total_tokens: int
    total_latency_ms: int
    completed_at: str
    final_diff: str | None = None
    final_plan: str | None = None
    detail: str = ""


TASK_RUNS = Table("task_runs", TaskRunRow)


def append_task_run(conn: Connection, row: TaskRunRow) -> int:
    """The pass stands in the record; its id. A pass that already stands there (a resumed run) is left as it is."""
    known = get_task_run(conn, row.task_id)
    return TASK_RUNS.insert(conn, row) if known is None else known.id


def finish_task_run(conn: Connection, task_run_id: int, outcome: TaskRunOutcome) -> None:
    """The pass's outcome columns hold `outcome`."""
    TASK_RUNS.update(
        conn,
        task_run_id,
        success=outcome.success,
        total_tokens=outcome.total_tokens,
        total_latency_ms=outcome.total_latency_ms,
        final_diff=outcome.final_diff,
        final_plan=outcome.final_plan,
        detail=outcome.detail,
        completed_at=outcome.completed_at,
    )


def get_task_run(conn: Connection, pass_id: str) -> TaskRunRow | None:
    """The pass of exactly this id."""
    return TASK_RUNS.first(conn, "WHERE task_id = ?", (pass_id,))


def list_task_runs(conn: Connection, task_id: str) -> tuple[TaskRunRow, ...]:
    """A task's own row and those of its passes, by id: the order in which they began."""
    return TASK_RUNS.select(conn, f"WHERE {OF_TASK} ORDER BY id", task_range(task_id))
