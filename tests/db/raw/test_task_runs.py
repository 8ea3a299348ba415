import sqlite3

from tests.db.raw.samples import NOW, PASS, TASK, task_run

from clean_room_agent.db.raw import task_runs


def test_a_pass_is_recorded_once_and_its_outcome_when_it_ends(conn: sqlite3.Connection) -> None:
    first = task_runs.append_task_run(conn, task_run())
    assert task_runs.append_task_run(conn, task_run(timestamp="later")) == first
    outcome = task_runs.TaskRunOutcome(
        success=True, total_tokens=5, total_latency_ms=6, completed_at=NOW, final_diff="+x"
    )
    task_runs.finish_task_run(conn, first, outcome)
    row = task_runs.get_task_run(conn, PASS)
    assert row is not None
    assert (row.timestamp, row.success, row.total_tokens, row.final_diff) == (NOW, True, 5, "+x")
    assert task_runs.get_task_run(conn, TASK) is None
