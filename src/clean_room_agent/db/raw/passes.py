"""The passes of a task: how each ended, what it decided, what it tried, and what the tests reported.

A resumed run reads its finished passes again and records what it finds there; `append_…` then finds the row by the columns
named in its table's `same`, and changes nothing.
"""

from typing import Annotated, Literal

from msgspec import Struct, field, structs
from msgspec.structs import replace

from clean_room_agent.artifacts.context import Judgment, Mode, Subject
from clean_room_agent.artifacts.edits import EditReport
from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.artifacts.outcomes import AttemptOutcome, PassType
from clean_room_agent.db.rows import OF_TASK, Connection, Table, task_range

ValidationKind = Literal["baseline", "attempt", "recheck", "final", "restored"]


class PassRow(Struct, frozen=True, kw_only=True):
    """One pass of a run; `sequence_order` is 0-based."""

    id: int = 0
    orchestrator_run_id: int
    task_run_id: int
    pass_type: PassType
    part_id: str = ""
    step_id: str = ""
    sequence_order: int
    timestamp: str


PASSES = Table("orchestrator_passes", PassRow, same=("orchestrator_run_id", "task_run_id"))
append_pass = PASSES.insert_once


def list_passes(conn: Connection, run_id: int) -> tuple[PassRow, ...]:
    """The run's passes, in their order."""
    return PASSES.select(conn, "WHERE orchestrator_run_id = ? ORDER BY sequence_order, id", (run_id,))


class TaskRunRow(Struct, frozen=True, kw_only=True):
    """One pass; `task_id` is the pass's id. Values that are not known yet are None."""

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


class TaskRunOutcome(Struct, frozen=True, kw_only=True):
    """How a pass ended, each field in the column of its name."""

    success: bool
    total_tokens: int
    total_latency_ms: int
    completed_at: str
    final_diff: str | None = None
    final_plan: str | None = None
    detail: str = ""


TASK_RUNS = Table("task_runs", TaskRunRow, same=("task_id",))
append_task_run, list_task_runs = TASK_RUNS.insert_once, TASK_RUNS.of_task


def finish_task_run(conn: Connection, task_run_id: int, outcome: TaskRunOutcome) -> None:
    """Store how the pass ended."""
    TASK_RUNS.update(conn, task_run_id, **structs.asdict(outcome))


def get_task_run(conn: Connection, pass_id: str) -> TaskRunRow | None:
    """The pass with exactly this id."""
    return TASK_RUNS.first(conn, "WHERE task_id = ?", (pass_id,))


class AttemptRow(Struct, frozen=True, kw_only=True):
    """One attempt (`attempt` is 1-based) within the pass `task_run_id`."""

    id: int = 0
    task_run_id: int
    attempt: int
    prompt_tokens: int | None
    completion_tokens: int | None
    latency_ms: int
    raw_response: str
    patch_applied: bool
    timestamp: str
    outcome: AttemptOutcome
    diff: str = ""
    edit_report: tuple[EditReport, ...] = ()
    call_id: int | None = None
    commit_hash: str = ""
    error: str = ""


class ValidationRow(Struct, frozen=True, kw_only=True):
    """One run of the test commands; `task_id` is the pass, or the task itself for its baseline and final run."""

    id: int = 0
    attempt_id: int | None
    success: bool
    test_output: str
    lint_output: str | None = None
    type_check_output: str | None = None
    failing_tests: tuple[FailingTest, ...] = ()
    newly_failing: tuple[str, ...] = ()
    task_id: str
    kind: ValidationKind
    command: str = ""
    exit_code: int | None = None
    timed_out: bool = False
    tests_run: int | None = None
    tests_passed: int | None = None
    duration_ms: int = 0
    timestamp: str


ATTEMPTS = Table("run_attempts", AttemptRow, same=("task_run_id", "attempt", "call_id", "commit_hash"))
VALIDATIONS = Table(
    "validation_results",
    ValidationRow,
    same=("task_id", "kind", "attempt_id", "command", "duration_ms", "exit_code", "test_output"),
)
append_attempt = ATTEMPTS.insert_once
append_validation, list_validations = VALIDATIONS.insert_once, VALIDATIONS.of_task


def append_judged(conn: Connection, row: AttemptRow, judged: ValidationRow | None) -> int:
    """Insert the attempt and the test run that judged it, if there was one; return the attempt's id."""
    attempt_id = append_attempt(conn, row)
    if judged is not None:
        append_validation(conn, replace(judged, attempt_id=attempt_id))
    return attempt_id


def list_attempts(conn: Connection, task_id: str) -> tuple[AttemptRow, ...]:
    """All attempts of a task's passes (or of one pass), by id."""
    tail = f"WHERE task_run_id IN (SELECT id FROM task_runs WHERE {OF_TASK}) ORDER BY id"  # noqa: S608 - a constant condition
    return ATTEMPTS.select(conn, tail, task_range(task_id))


class DecisionRow(Struct, frozen=True, kw_only=True):
    """One candidate at one stage; `task_id` is the id of the pass. In JSON its parts are flat, as in the table."""

    id: int = 0
    task_id: str
    stage: str
    subject: Annotated[Subject, "flat"]
    included: bool
    detail: str = ""
    reason: str
    judgment: Annotated[Judgment, "flat"] = field(default_factory=Judgment)
    timestamp: str


DECISIONS = Table("retrieval_decisions", DecisionRow)
list_decisions = DECISIONS.of_task


def append_decisions(conn: Connection, rows: tuple[DecisionRow, ...]) -> tuple[int, ...]:
    """Insert the decisions in order and return their ids."""
    return tuple(DECISIONS.insert(conn, row) for row in rows)


def list_decisions_of_pass(conn: Connection, pass_id: str) -> tuple[DecisionRow, ...]:
    """The decisions of exactly this pass, by id."""
    return DECISIONS.select(conn, "WHERE task_id = ? ORDER BY id", (pass_id,))


class PlanDecisionRow(Struct, frozen=True, kw_only=True):
    """One yes or no; `task_id` is the id of the pass."""

    id: int = 0
    task_id: str
    question: str
    item: str
    yes: bool
    reason: str
    judgment: Annotated[Judgment, "flat"] = field(default_factory=Judgment)
    timestamp: str


PLAN_DECISIONS = Table(
    "plan_decisions", PlanDecisionRow, same=("task_id", "question", "item", "reason", "call_id")
)
list_plan_decisions = PLAN_DECISIONS.of_task


def append_plan_decisions(conn: Connection, rows: tuple[PlanDecisionRow, ...]) -> tuple[int, ...]:
    """Insert the decisions in order and return their ids; one that a resumed run repeats is not changed."""
    return tuple(PLAN_DECISIONS.insert_once(conn, row) for row in rows)


class RefinementRow(Struct, frozen=True, kw_only=True):
    """One refinement; `request` and `evidence` are JSON text, `added` lists the paths and symbols it added."""

    id: int = 0
    task_id: str
    request: str
    evidence: str
    added: tuple[str, ...]
    timestamp: str


class RecoveryRow(Struct, frozen=True, kw_only=True):
    """One decision about a step that failed; `state` is JSON text."""

    id: int = 0
    task_id: str
    state: str
    rule: str
    action: str
    detail: str = ""
    timestamp: str


REFINEMENTS = Table("refinements", RefinementRow, same=("task_id", "request"))
RECOVERY_DECISIONS = Table("recovery_decisions", RecoveryRow, same=("task_id", "rule", "action"))
append_refinement, list_refinements = REFINEMENTS.insert_once, REFINEMENTS.of_task
append_recovery_decision, list_recovery_decisions = (
    RECOVERY_DECISIONS.insert_once,
    RECOVERY_DECISIONS.of_task,
)
