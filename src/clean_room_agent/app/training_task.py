"""What `cra train-plan` and `cra curate-data` share: the record, opened without a model, and their task in it."""

import contextlib
from collections.abc import Iterator

from msgspec import Struct

from clean_room_agent.app import wiring
from clean_room_agent.app.settings import Overrides, load_settings
from clean_room_agent.artifacts.context import Mode
from clean_room_agent.artifacts.names import new_task_id
from clean_room_agent.db.connection import read_record
from clean_room_agent.db.raw.passes import TaskRunOutcome, TaskRunRow, append_task_run, finish_task_run
from clean_room_agent.training.logs import LogAnalysisAPI
from clean_room_agent.workspace import Workspace


class TrainingTask(Struct, kw_only=True):
    """A task in progress. It ends as failed, unless `success` is set."""

    task_id: str
    success: bool = False
    plan: str | None = None
    detail: str = ""


@contextlib.contextmanager
def open_logs(workspace: Workspace) -> Iterator[tuple[wiring.ModelAccess, LogAnalysisAPI]]:
    """The record, with models that only count tokens, and the logs as they were when the command began.

    Raises:
        UsageError: nothing has been recorded.
        ConfigError: a value is missing.
    """
    wiring.require_record(workspace)
    settings = load_settings(workspace.config, Overrides())
    settings.require("models", "budget")
    with (
        read_record(workspace.repo) as conn,
        wiring.open_model_access(workspace, settings, wiring.no_transport) as access,
    ):
        yield access, LogAnalysisAPI(conn)


@contextlib.contextmanager
def recorded_task(access: wiring.ModelAccess, mode: Mode, workspace: Workspace) -> Iterator[TrainingTask]:
    """Record the task while it is in progress, then its outcome. If the body raises, it has failed."""
    record = access.record
    task = TrainingTask(task_id=new_task_id())
    window = access.router.window("reasoning")
    row = TaskRunRow(
        task_id=task.task_id,
        repo_path=str(workspace.repo),
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
        outcome = TaskRunOutcome(
            success=task.success,
            total_tokens=0,
            total_latency_ms=0,
            completed_at=record.now(),
            final_plan=task.plan,
            detail=task.detail,
        )
        record.write(finish_task_run, row_id, outcome)
