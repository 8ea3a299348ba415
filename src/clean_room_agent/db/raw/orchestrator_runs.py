"""Runs of many passes, how they stand, and which passes they are made of."""

from dataclasses import dataclass

from clean_room_agent.artifacts.outcomes import PassType, RunStatus
from clean_room_agent.db.rows import Connection, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class OrchestratorRunRow:
    """One run. `config` and `snapshot` are JSON text."""

    id: int = 0
    task_id: str
    repo_path: str
    task_description: str
    total_parts: int = 0
    total_steps: int = 0
    parts_completed: int = 0
    steps_completed: int = 0
    status: RunStatus = RunStatus.RUNNING
    timestamp: str
    completed_at: str | None = None
    command: str = "solve"
    config: str = "{}"
    program_version: str = ""
    base_commit: str = ""
    snapshot_commit: str = ""
    snapshot: str = ""
    branch: str = ""
    result_commit: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """How far a run has come."""

    total_parts: int
    total_steps: int
    parts_completed: int
    steps_completed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """How a run ended, or where it waits (`completed_at` is None where it can go on)."""

    status: RunStatus
    completed_at: str | None
    reason: str = ""
    branch: str = ""
    result_commit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRow:
    """One pass of a run; `sequence_order` is 0-based."""

    id: int = 0
    orchestrator_run_id: int
    task_run_id: int
    pass_type: PassType
    part_id: str = ""
    step_id: str = ""
    sequence_order: int
    timestamp: str


ORCHESTRATOR_RUNS = Table("orchestrator_runs", OrchestratorRunRow)
PASSES = Table("orchestrator_passes", PassRow)


def append_orchestrator_run(conn: Connection, row: OrchestratorRunRow) -> int:
    """The run is stored; its id.

    Raises:
        RecordError: (through the record) a run of this task already stands there.
    """
    return ORCHESTRATOR_RUNS.insert(conn, row)


def set_snapshot(conn: Connection, run_id: int, *, commit: str, snapshot: str) -> None:
    """The run knows the commit that it starts from and the account (JSON) of what is in it. Only once a run."""
    ORCHESTRATOR_RUNS.update(conn, run_id, snapshot_commit=commit, snapshot=snapshot)


def set_progress(conn: Connection, run_id: int, progress: RunProgress) -> None:
    """The run's counts are these."""
    ORCHESTRATOR_RUNS.update(
        conn,
        run_id,
        total_parts=progress.total_parts,
        total_steps=progress.total_steps,
        parts_completed=progress.parts_completed,
        steps_completed=progress.steps_completed,
    )


def set_outcome(conn: Connection, run_id: int, outcome: RunOutcome) -> None:
    """The run's status, reason, branch, result and end are these; also for a run that goes on."""
    ORCHESTRATOR_RUNS.update(
        conn,
        run_id,
        status=outcome.status,
        completed_at=outcome.completed_at,
        reason=outcome.reason,
        branch=outcome.branch,
        result_commit=outcome.result_commit,
    )


def append_pass(conn: Connection, row: PassRow) -> int:
    """The pass belongs to the run; its id. One that already does (a resumed run) is left as it is."""
    tail = "WHERE orchestrator_run_id = ? AND task_run_id = ?"
    known = PASSES.first(conn, tail, (row.orchestrator_run_id, row.task_run_id))
    return PASSES.insert(conn, row) if known is None else known.id


def get_orchestrator_run(conn: Connection, task_id: str) -> OrchestratorRunRow | None:
    """The run of exactly this task."""
    return ORCHESTRATOR_RUNS.first(conn, "WHERE task_id = ?", (task_id,))


def list_orchestrator_runs(conn: Connection, *, limit: int = 100) -> tuple[OrchestratorRunRow, ...]:
    """The newest runs, newest first."""
    return ORCHESTRATOR_RUNS.select(conn, "ORDER BY timestamp DESC, id DESC LIMIT ?", (limit,))


def list_running(conn: Connection) -> tuple[OrchestratorRunRow, ...]:
    """The runs that stand as running, by id: some of them may have died."""
    return ORCHESTRATOR_RUNS.select(conn, "WHERE status = 'running' ORDER BY id")


def list_passes(conn: Connection, run_id: int) -> tuple[PassRow, ...]:
    """The run's passes, in their order."""
    return PASSES.select(conn, "WHERE orchestrator_run_id = ? ORDER BY sequence_order, id", (run_id,))
