import sqlite3
from dataclasses import replace

from tests.db.raw.samples import TASK, call, run

from clean_room_agent.db.raw import calls, orchestrator_runs, run_costs


def test_a_solve_costs_what_its_calls_cost_and_a_failed_one_no_tokens(conn: sqlite3.Connection) -> None:
    config = '{"models": {"coding": "coder:3b"}}'
    orchestrator_runs.append_orchestrator_run(conn, replace(run(), config=config))
    orchestrator_runs.append_orchestrator_run(conn, replace(run("replayed"), command="replay"))
    calls.append_call(conn, call(prompt_tokens=10, completion_tokens=2, latency_ms=5))
    calls.append_call(conn, call(prompt_tokens=None, estimated_tokens=13, latency_ms=6))
    calls.append_call(conn, call(error="gone", finish="error:ServerFailed", latency_ms=7))
    (cost,) = run_costs.list_run_costs(conn)
    assert (cost.task_id, cost.model, cost.calls, cost.tokens, cost.model_ms) == (TASK, "coder:3b", 3, 25, 18)
