import sqlite3

from tests.db.raw.samples import TASK, call, sample

from clean_room_agent.db.raw import calibrations, calls


def test_pairs_are_the_newest_different_prompts_of_the_model_as_it_is_now(conn: sqlite3.Connection) -> None:
    for number, digest in enumerate(("old", "new", "new", "new")):
        changes = {
            "prompt": f"p{min(number, 2)}",
            "prompt_hash": f"h{min(number, 2)}",
            "model_digest": digest,
        }
        calls.append_call(conn, call(prompt_tokens=10 + number, **changes))
    calls.append_call(conn, call(prompt="uncounted", prompt_hash="u", prompt_tokens=None, model_digest="new"))
    pairs = calibrations.list_pairs(conn, "coder:3b", limit=9)
    assert [(pair.prompt, pair.model_digest) for pair in pairs] == [("p1", "new"), ("p2", "new")]
    assert [pair.prompt for pair in calibrations.list_pairs(conn, "coder:3b", limit=1)] == ["p2"]
    assert calibrations.count_pairs_since(conn, "coder:3b", 0) == 3
    assert calibrations.count_pairs_since(conn, "coder:3b", 2) == 1


def test_a_model_has_its_newest_calibration_and_a_task_the_one_it_began_with(
    conn: sqlite3.Connection,
) -> None:
    calls.append_call(conn, call())
    for margin in (1.1, 1.2):
        calibrations.append_calibration(conn, sample(calibrations.CalibrationRow, margin=margin))
    newest = calibrations.newest_calibration(conn, "coder:3b")
    assert newest is not None
    assert newest.margin == 1.2
    assert calibrations.newest_calibration(conn, "other:1b") is None
    calibrations.append_task_estimators(conn, (sample(calibrations.TaskEstimatorRow),))
    (used,) = calibrations.list_task_estimators(conn, TASK)
    assert used.calibration_id is not None
    began = calibrations.get_calibration(conn, used.calibration_id)
    assert began is not None
    assert began.margin == 1.1
