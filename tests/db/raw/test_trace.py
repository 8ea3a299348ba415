import sqlite3

from testing.runs.decision_rows import decision_row
from tests.db.raw.samples import NOW, PASS, TASK, call, run, task_run

from clean_room_agent.artifacts.outcomes import AttemptOutcome, PassType
from clean_room_agent.db.raw import attempts, calls, decisions, orchestrator_runs, task_runs

TRACE = """
SELECT c.prompt, d.reason, v.success
FROM orchestrator_runs AS r
JOIN orchestrator_passes AS p ON p.orchestrator_run_id = r.id
JOIN task_runs AS t ON t.id = p.task_run_id
JOIN run_attempts AS a ON a.task_run_id = t.id
JOIN validation_results AS v ON v.attempt_id = a.id
JOIN retrieval_llm_calls AS c ON c.id = a.call_id AND c.task_id = t.task_id
JOIN retrieval_decisions AS d ON d.task_id = t.task_id
WHERE r.task_id = ?
"""


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


def decision(task_id: str, path: str) -> decisions.DecisionRow:
    return decision_row(
        task_id=task_id,
        stage="scope",
        file_id=1,
        tier=1,
        included=True,
        reason="named",
        timestamp=NOW,
        path=path,
    )


def test_an_accepted_change_is_traced_to_its_prompt_and_its_decision_by_sql_alone(
    conn: sqlite3.Connection,
) -> None:
    run_id = orchestrator_runs.append_orchestrator_run(conn, run())
    task_run_id = task_runs.append_task_run(conn, task_run())
    row = orchestrator_runs.PassRow(
        orchestrator_run_id=run_id,
        task_run_id=task_run_id,
        pass_type=PassType.IMPLEMENT,
        sequence_order=0,
        timestamp=NOW,
    )
    orchestrator_runs.append_pass(conn, row)
    decisions.append_decisions(conn, (decision(PASS, "a.py"),))
    call_id = calls.append_call(conn, call(prompt="the prompt"))
    attempt_id = attempts.append_attempt(conn, attempt(task_run_id, 1, call_id))
    attempts.append_validation(conn, validation(PASS, attempt_id))
    assert [tuple(row) for row in conn.execute(TRACE, (TASK,))] == [("the prompt", "named", 1)]
