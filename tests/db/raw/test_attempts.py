import sqlite3

from tests.db.raw.samples import NOW, PASS, TASK, task_run

from clean_room_agent.artifacts.outcomes import AttemptOutcome
from clean_room_agent.db.raw import attempts, task_runs

OTHER = "3f0c9999-7c7e-4a5c-9a53-0f2f0a6f0d11"


def attempt(task_run_id: int, number: int, call_id: int | None = None) -> attempts.AttemptRow:
    return attempts.AttemptRow(
        task_run_id=task_run_id,
        attempt=number,
        prompt_tokens=None,
        completion_tokens=None,
        latency_ms=1,
        raw_response="",
        patch_applied=True,
        timestamp=NOW,
        outcome=AttemptOutcome.APPLIED_AND_PASSED,
        call_id=call_id,
    )


def validation(task_id: str, attempt_id: int | None) -> attempts.ValidationRow:
    kind: attempts.ValidationKind = "attempt" if attempt_id else "baseline"
    return attempts.ValidationRow(
        attempt_id=attempt_id, success=True, test_output="", task_id=task_id, kind=kind, timestamp=NOW
    )


def test_attempts_stand_with_their_validations_and_the_baseline_without_one(conn: sqlite3.Connection) -> None:
    mine = task_runs.append_task_run(conn, task_run())
    other = task_runs.append_task_run(conn, task_run(f"{OTHER}:impl:p:s"))
    attempts.append_validation(conn, validation(TASK, None))
    for task_run_id, pass_id in ((mine, PASS), (other, f"{OTHER}:impl:p:s")):
        attempt_id = attempts.append_attempt(conn, attempt(task_run_id, 1))
        attempts.append_validation(conn, validation(pass_id, attempt_id))
    assert [row.task_run_id for row in attempts.list_attempts(conn, TASK)] == [mine]
    assert [row.attempt_id for row in attempts.list_validations(conn, TASK)] == [None, 1]


def test_an_attempt_and_the_test_run_that_judged_it_stand_there_both_or_neither(
    conn: sqlite3.Connection,
) -> None:
    row_id = task_runs.append_task_run(conn, task_run(PASS))
    attempt_id = attempts.append_judged(conn, attempt(row_id, 1), validation(PASS, None))
    assert [row.attempt_id for row in attempts.list_validations(conn, PASS)] == [attempt_id]
    attempts.append_judged(conn, attempt(row_id, 2), None)
    assert len(attempts.list_attempts(conn, PASS)) == 2
    assert len(attempts.list_validations(conn, PASS)) == 1
