"""Attempts at a step, and what the tests said; both written once their outcome is known."""

from dataclasses import dataclass, replace
from typing import Literal

from clean_room_agent.artifacts.edits import EditReport
from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.artifacts.outcomes import AttemptOutcome
from clean_room_agent.db.raw.task_ids import OF_TASK, task_range
from clean_room_agent.db.rows import Connection, Table

ValidationKind = Literal["baseline", "attempt", "recheck", "final", "restored"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRow:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationRow:
    """One run of the test commands; `task_id` is the pass, or the task for baseline and final run."""

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


ATTEMPTS = Table("run_attempts", AttemptRow)
VALIDATIONS = Table("validation_results", ValidationRow)


def append_attempt(conn: Connection, row: AttemptRow) -> int:
    """The attempt is stored; its id. One that is (a resumed run) is left as it is."""
    return ATTEMPTS.insert_once(conn, row, "task_run_id", "attempt", "call_id", "commit_hash")


def append_judged(conn: Connection, row: AttemptRow, judged: ValidationRow | None) -> int:
    """The attempt is stored with the test run that judged it, where there was one; the attempt's id."""
    attempt_id = append_attempt(conn, row)
    if judged is not None:
        append_validation(conn, replace(judged, attempt_id=attempt_id))
    return attempt_id


def append_validation(conn: Connection, row: ValidationRow) -> int:
    """The test run is stored; its id. One that is (a resumed run) is left as it is."""
    same = ("task_id", "kind", "attempt_id", "command", "duration_ms", "exit_code", "test_output")
    return VALIDATIONS.insert_once(conn, row, *same)


def list_attempts(conn: Connection, task_id: str) -> tuple[AttemptRow, ...]:
    """All attempts of a task's passes (or of one pass), by id."""
    tail = f"WHERE task_run_id IN (SELECT id FROM task_runs WHERE {OF_TASK}) ORDER BY id"  # noqa: S608 - a constant condition
    return ATTEMPTS.select(conn, tail, task_range(task_id))


def list_validations(conn: Connection, task_id: str) -> tuple[ValidationRow, ...]:
    """All test runs of a task and its passes (or of one pass), by id."""
    return VALIDATIONS.select(conn, f"WHERE {OF_TASK} ORDER BY id", task_range(task_id))
