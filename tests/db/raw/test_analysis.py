import sqlite3

from msgspec.structs import replace
from tests.db.raw.samples import PASS, TASK, call, run

from clean_room_agent.db.raw import analysis, calls, runs


def test_sums_of_a_spoiled_record_have_no_largest_number(conn: sqlite3.Connection) -> None:
    for _ in range(3):
        calls.append_call(conn, call(prompt_tokens=2**62, completion_tokens=2**62, latency_ms=2**62))
    total = calls.total_of_pass(conn, PASS)
    assert (total.calls, total.prompt_tokens, total.latency_ms) == (3, 3 * 2**62, 3 * 2**62)
    (sums,) = analysis.list_call_sums(conn)
    assert (sums.calls, sums.completion_tokens) == (3, 3 * 2**62)


def test_a_solve_costs_what_its_calls_cost_and_a_failed_one_no_tokens(conn: sqlite3.Connection) -> None:
    config = '{"models": {"coding": "coder:3b"}}'
    runs.append_orchestrator_run(conn, replace(run(), config=config))
    runs.append_orchestrator_run(conn, replace(run("replayed"), command="replay"))
    calls.append_call(conn, call(prompt_tokens=10, completion_tokens=2, latency_ms=5))
    calls.append_call(conn, call(prompt_tokens=None, estimated_tokens=13, latency_ms=6))
    calls.append_call(conn, call(error="gone", finish="error:ServerFailed", latency_ms=7))
    (cost,) = analysis.list_run_costs(conn)
    assert (cost.task_id, cost.model, cost.calls, cost.tokens, cost.model_ms) == (TASK, "coder:3b", 3, 25, 18)
