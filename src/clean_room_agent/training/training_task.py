"""The task that `cra train-plan` or `cra curate-data` is in the record: what it came to. Neither asks a model."""

import contextlib
from collections.abc import Iterator

from msgspec import Struct

from clean_room_agent.artifacts.context import Mode
from clean_room_agent.artifacts.names import new_task_id
from clean_room_agent.db.raw.passes import TaskRunOutcome, TaskRunRow, append_task_run, finish_task_run
from clean_room_agent.db.raw.record import Record
from clean_room_agent.llm.router import ModelRouter


class TrainingTask(Struct, kw_only=True):
    """A task in progress. It ends as failed, unless it is set to something else."""

    task_id: str
    record: Record
    router: ModelRouter
    success: bool = False
    plan: str | None = None
    detail: str = ""


@contextlib.contextmanager
def recorded_task(record: Record, router: ModelRouter, mode: Mode, repo_path: str) -> Iterator[TrainingTask]:
    """Record the task while it is in progress, then its outcome. If the body raises, it has failed."""
    task = TrainingTask(task_id=new_task_id(), record=record, router=router)
    window = router.window("reasoning")
    row = TaskRunRow(
        task_id=task.task_id,
        repo_path=repo_path,
        mode=mode,
        execute_model="",
        context_window=window.context,
        reserved_tokens=window.reserved,
        stages="",
        timestamp=record.now(),
    )
    row_id = record.write(append_task_run, row)
    try:
        yield task
    except BaseException as error:
        task.success, task.detail = False, f"stopped: {error or type(error).__name__}"
        raise
    finally:
        told = TaskRunOutcome(
            success=task.success,
            total_tokens=0,
            total_latency_ms=0,
            completed_at=record.now(),
            final_plan=task.plan,
            detail=task.detail,
        )
        record.write(finish_task_run, row_id, told)
