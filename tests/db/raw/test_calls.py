import sqlite3
from typing import Any

import pytest
from msgspec.structs import replace
from tests.db.raw.samples import NOW, PASS, TASK, call, sample

from clean_room_agent.artifacts.model_calls import AnswerReading
from clean_room_agent.db.raw import calls

OTHER = "3f0c9999-7c7e-4a5c-9a53-0f2f0a6f0d11"


def test_the_calls_of_a_task_are_its_own_and_those_of_its_passes(conn: sqlite3.Connection) -> None:
    named = (TASK, f"{TASK}:meta_plan", PASS, f"{PASS}:retry_1", f"{TASK}0", OTHER, TASK[:-1], f"{PASS}_2")
    for number, task_id in enumerate(named):
        calls.append_call(conn, call(task_id=task_id, attempt=number))
    assert [row.site.attempt for row in calls.list_calls(conn, TASK)] == [0, 1, 2, 3, 7]
    assert [row.site.attempt for row in calls.list_calls(conn, PASS)] == [2, 3]
    assert calls.list_calls(conn, "%") == ()
    found = calls.get_call(conn, 3)
    assert found is not None
    assert found.site.pass_id == PASS
    assert calls.get_call(conn, 99) is None


def test_readings_are_those_of_the_tasks_calls(conn: sqlite3.Connection) -> None:
    for task_id in (PASS, OTHER):
        call_id = calls.append_call(conn, call(task_id=task_id))
        calls.append_reading(
            conn, calls.ReadingRow(call_id=call_id, reading=AnswerReading.PARSED, timestamp=NOW)
        )
    assert [row.call_id for row in calls.list_readings(conn, TASK)] == [1]


def test_the_factor_that_a_call_needed_is_what_the_server_counted_for_an_estimate_of_factor_1(
    conn: sqlite3.Connection,
) -> None:
    calls.append_task_estimators(
        conn, (calls.TaskEstimatorRow(task_id=TASK, model="coder:3b", start_factor=1.3, timestamp=NOW),)
    )
    for number, counted in enumerate((80, 120, None)):
        calls.append_call(
            conn, call(task_id=PASS, attempt=number, estimated_tokens=130, prompt_tokens=counted)
        )
    for name in ("window_probe", "fill", "fill_probe"):
        calls.append_call(conn, call(task_id=PASS, prompt_tokens=9, estimated_tokens=1, call_type=name))
    calls.append_call(
        conn, call(task_id=OTHER, prompt_tokens=9, estimated_tokens=1)
    )  # measured as nobody knows
    assert calls.list_needed_factors(conn, "coder:3b", limit=9) == pytest.approx((1.2, 0.8))
    assert calls.list_needed_factors(conn, "other:1b", limit=9) == ()


def test_the_newest_measurement_of_this_very_prompt_counts(conn: sqlite3.Connection) -> None:
    calls.append_call(conn, call())
    row = sample(calls.AnswerBiasRow)
    others: list[dict[str, Any]] = [
        {"key": replace(row.key, **{name: "other"})} for name in ("prompt_hash", "model_digest", "prompt")
    ]
    for changes in (*({"shares": (("yes", share),)} for share in (0.1, 0.2)), *others):
        calls.append_bias(conn, sample(calls.AnswerBiasRow, **changes))
    found = calls.newest_bias(conn, row.key)
    assert found is not None
    assert found.shares == (("yes", 0.2),)


def test_a_proof_holds_for_this_server_model_and_window_alone(conn: sqlite3.Connection) -> None:
    calls.append_call(conn, call())
    row = sample(calls.WindowProofRow)
    for when in ("2026-01-01", "2026-01-02"):
        calls.append_proof(conn, sample(calls.WindowProofRow, timestamp=when))
    found = calls.newest_proof(conn, row.server)
    assert found is not None
    assert found.timestamp == "2026-01-02"
    assert calls.newest_proof(conn, replace(row.server, window=row.server.window * 2)) is None
    assert calls.newest_proof(conn, replace(row.server, model="other:1b")) is None
