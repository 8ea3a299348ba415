import sqlite3

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


def test_pairs_are_the_newest_different_prompts_of_the_model_as_it_is_now(conn: sqlite3.Connection) -> None:
    for number, digest in enumerate(("old", "new", "new", "new")):
        changes = {
            "prompt": f"p{min(number, 2)}",
            "prompt_hash": f"h{min(number, 2)}",
            "model_digest": digest,
        }
        calls.append_call(conn, call(prompt_tokens=10 + number, **changes))
    calls.append_call(conn, call(prompt="uncounted", prompt_hash="u", prompt_tokens=None, model_digest="new"))
    for name in ("window_probe", "fill", "fill_probe"):
        calls.append_call(conn, call(prompt=name, prompt_hash=name, prompt_tokens=9, call_type=name))
    pairs = calls.list_pairs(conn, "coder:3b", limit=9)
    assert [(pair.prompt, pair.model_digest) for pair in pairs] == [("p1", "new"), ("p2", "new")]
    assert [pair.prompt for pair in calls.list_pairs(conn, "coder:3b", limit=1)] == ["p2"]
    assert calls.count_pairs_since(conn, "coder:3b", 0) == 3
    assert calls.count_pairs_since(conn, "coder:3b", 2) == 1


def test_a_model_has_its_newest_calibration_and_a_task_the_one_it_began_with(
    conn: sqlite3.Connection,
) -> None:
    calls.append_call(conn, call())
    for margin in (1.1, 1.2):
        calls.append_calibration(conn, sample(calls.CalibrationRow, margin=margin))
    newest = calls.newest_calibration(conn, "coder:3b")
    assert newest is not None
    assert newest.margin == 1.2
    assert calls.newest_calibration(conn, "other:1b") is None
    calls.append_task_estimators(conn, (sample(calls.TaskEstimatorRow),))
    (used,) = calls.list_task_estimators(conn, TASK)
    assert used.calibration_id is not None
    began = calls.get_calibration(conn, used.calibration_id)
    assert began is not None
    assert began.margin == 1.1


def test_the_newest_measurement_of_this_very_prompt_counts(conn: sqlite3.Connection) -> None:
    calls.append_call(conn, call())
    row = sample(calls.AnswerBiasRow)
    others = ({"prompt_hash": "cd"}, {"model_digest": "other"}, {"prompt": "piece_judgment"})
    for changes in ({"shares": (("yes", 0.1),)}, {"shares": (("yes", 0.2),)}, *others):
        calls.append_bias(conn, sample(calls.AnswerBiasRow, **changes))
    found = calls.newest_bias(
        conn,
        base_url=row.base_url,
        model=row.model,
        model_digest=row.model_digest,
        prompt=row.prompt,
        prompt_hash=row.prompt_hash,
    )
    assert found is not None
    assert found.shares == (("yes", 0.2),)


def test_a_proof_holds_for_this_server_model_and_window_alone(conn: sqlite3.Connection) -> None:
    calls.append_call(conn, call())
    row = sample(calls.WindowProofRow)
    for when in ("2026-01-01", "2026-01-02"):
        calls.append_proof(conn, sample(calls.WindowProofRow, timestamp=when))
    same = {"provider": row.provider, "base_url": row.base_url, "model": row.model, "model_digest": ""}
    found = calls.newest_proof(conn, **same, window=row.window)
    assert found is not None
    assert found.timestamp == "2026-01-02"
    assert calls.newest_proof(conn, **same, window=row.window * 2) is None
    assert calls.newest_proof(conn, **{**same, "model": "other:1b"}, window=row.window) is None
