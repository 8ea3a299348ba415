import sqlite3

from tests.db.raw.samples import TASK, call, sample

from clean_room_agent.db.raw import calls, model_measurements


def test_pairs_are_the_newest_different_prompts_of_the_model_as_it_is_now(conn: sqlite3.Connection) -> None:
    for number, digest in enumerate(("old", "new", "new", "new")):
        changes = {
            "prompt": f"p{min(number, 2)}",
            "prompt_hash": f"h{min(number, 2)}",
            "model_digest": digest,
        }
        calls.append_call(conn, call(prompt_tokens=10 + number, **changes))
    calls.append_call(conn, call(prompt="uncounted", prompt_hash="u", prompt_tokens=None, model_digest="new"))
    pairs = model_measurements.list_pairs(conn, "coder:3b", limit=9)
    assert [(pair.prompt, pair.model_digest) for pair in pairs] == [("p1", "new"), ("p2", "new")]
    assert [pair.prompt for pair in model_measurements.list_pairs(conn, "coder:3b", limit=1)] == ["p2"]
    assert model_measurements.count_pairs_since(conn, "coder:3b", 0) == 3
    assert model_measurements.count_pairs_since(conn, "coder:3b", 2) == 1


def test_a_model_has_its_newest_calibration_and_a_task_the_one_it_began_with(
    conn: sqlite3.Connection,
) -> None:
    calls.append_call(conn, call())
    for margin in (1.1, 1.2):
        model_measurements.append_calibration(conn, sample(model_measurements.CalibrationRow, margin=margin))
    newest = model_measurements.newest_calibration(conn, "coder:3b")
    assert newest is not None
    assert newest.margin == 1.2
    assert model_measurements.newest_calibration(conn, "other:1b") is None
    model_measurements.append_task_estimators(conn, (sample(model_measurements.TaskEstimatorRow),))
    (used,) = model_measurements.list_task_estimators(conn, TASK)
    assert used.calibration_id is not None
    began = model_measurements.get_calibration(conn, used.calibration_id)
    assert began is not None
    assert began.margin == 1.1


def test_the_newest_measurement_of_this_very_prompt_counts(conn: sqlite3.Connection) -> None:
    calls.append_call(conn, call())
    row = sample(model_measurements.AnswerBiasRow)
    others = ({"prompt_hash": "cd"}, {"model_digest": "other"}, {"prompt": "piece_judgment"})
    for changes in ({"shares": (("yes", 0.1),)}, {"shares": (("yes", 0.2),)}, *others):
        model_measurements.append_bias(conn, sample(model_measurements.AnswerBiasRow, **changes))
    found = model_measurements.newest_bias(
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
    row = sample(model_measurements.WindowProofRow)
    for when in ("2026-01-01", "2026-01-02"):
        model_measurements.append_proof(conn, sample(model_measurements.WindowProofRow, timestamp=when))
    same = {"provider": row.provider, "base_url": row.base_url, "model": row.model, "model_digest": ""}
    found = model_measurements.newest_proof(conn, **same, window=row.window)
    assert found is not None
    assert found.timestamp == "2026-01-02"
    assert model_measurements.newest_proof(conn, **same, window=row.window * 2) is None
    assert model_measurements.newest_proof(conn, **{**same, "model": "other:1b"}, window=row.window) is None
