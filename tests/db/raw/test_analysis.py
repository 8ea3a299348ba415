import sqlite3

from tests.db.raw.samples import PASS, attempt, call, task_run

from clean_room_agent.artifacts.outcomes import AttemptOutcome
from clean_room_agent.db.raw import analysis, calls, passes


def test_sums_of_a_spoiled_record_have_no_largest_number(conn: sqlite3.Connection) -> None:
    for _ in range(3):
        calls.append_call(conn, call(prompt_tokens=2**62, completion_tokens=2**62, latency_ms=2**62))
    total = calls.total_of_pass(conn, PASS)
    assert (total.calls, total.prompt_tokens, total.latency_ms) == (3, 3 * 2**62, 3 * 2**62)
    (sums,) = analysis.list_call_sums(conn)
    assert (sums.calls, sums.completion_tokens) == (3, 3 * 2**62)


def test_answers_that_were_tried_count_once_by_the_best_that_came_of_them(conn: sqlite3.Connection) -> None:
    first, second = (calls.append_call(conn, call(call_type="fill")) for _ in range(2))
    calls.append_call(conn, call(call_type="fill"))
    task_run_id = passes.append_task_run(conn, task_run())
    for number, (call_id, applied, outcome) in enumerate(
        (
            (first, True, AttemptOutcome.TESTS_FAILED),
            (first, True, AttemptOutcome.APPLIED_AND_PASSED),
            (second, False, AttemptOutcome.REFUSED),
        )
    ):
        row = attempt(task_run_id, number, patch_applied=applied, outcome=outcome, call_id=call_id)
        passes.append_attempt(conn, row)
    (sums,) = analysis.list_call_sums(conn)
    assert (sums.calls, sums.tried, sums.applied, sums.passed) == (3, 2, 1, 1)
