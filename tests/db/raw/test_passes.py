import sqlite3

from tests.db.raw.samples import NOW, PASS, TASK, attempt, call, sample, task_run, validation

from clean_room_agent.db.raw import calls, passes

OTHER = "3f0c9999-7c7e-4a5c-9a53-0f2f0a6f0d11"


def test_a_pass_is_recorded_once_and_its_outcome_when_it_ends(conn: sqlite3.Connection) -> None:
    first = passes.append_task_run(conn, task_run())
    assert passes.append_task_run(conn, task_run(timestamp="later")) == first
    outcome = passes.TaskRunOutcome(
        success=True, total_tokens=5, total_latency_ms=6, completed_at=NOW, final_diff="+x"
    )
    passes.finish_task_run(conn, first, outcome)
    row = passes.get_task_run(conn, PASS)
    assert row is not None
    assert (row.timestamp, row.success, row.total_tokens, row.final_diff) == (NOW, True, 5, "+x")
    assert passes.get_task_run(conn, TASK) is None


def test_attempts_stand_with_their_validations_and_the_baseline_without_one(conn: sqlite3.Connection) -> None:
    mine = passes.append_task_run(conn, task_run())
    other = passes.append_task_run(conn, task_run(f"{OTHER}:impl:p:s"))
    passes.append_validation(conn, validation(TASK, None))
    for task_run_id, pass_id in ((mine, PASS), (other, f"{OTHER}:impl:p:s")):
        attempt_id = passes.append_attempt(conn, attempt(task_run_id, 1))
        passes.append_validation(conn, validation(pass_id, attempt_id))
    assert [row.task_run_id for row in passes.list_attempts(conn, TASK)] == [mine]
    assert [row.attempt_id for row in passes.list_validations(conn, TASK)] == [None, 1]


def test_an_attempt_and_the_test_run_that_judged_it_stand_there_both_or_neither(
    conn: sqlite3.Connection,
) -> None:
    row_id = passes.append_task_run(conn, task_run(PASS))
    attempt_id = passes.append_judged(conn, attempt(row_id, 1), validation(PASS, None))
    assert [row.attempt_id for row in passes.list_validations(conn, PASS)] == [attempt_id]
    passes.append_judged(conn, attempt(row_id, 2), None)
    assert len(passes.list_attempts(conn, PASS)) == 2
    assert len(passes.list_validations(conn, PASS)) == 1


def test_a_resumed_run_decides_nothing_twice(conn: sqlite3.Connection) -> None:
    calls.append_call(conn, call())
    row = sample(passes.PlanDecisionRow)
    other = sample(passes.PlanDecisionRow, item="c1 c3")
    assert passes.append_plan_decisions(conn, (row,)) == (1,)
    assert passes.append_plan_decisions(conn, (row, other)) == (1, 2)
    assert [one.item for one in passes.list_plan_decisions(conn, "t")] == ["c1 c2", "c1 c3"]
    assert passes.list_plan_decisions(conn, "u") == ()
