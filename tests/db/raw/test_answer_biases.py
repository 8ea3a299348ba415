import sqlite3

from tests.db.raw.samples import call, sample

from clean_room_agent.db.raw import answer_biases, calls


def test_the_newest_measurement_of_this_very_prompt_counts(conn: sqlite3.Connection) -> None:
    calls.append_call(conn, call())
    row = sample(answer_biases.AnswerBiasRow)
    others = ({"prompt_hash": "cd"}, {"model_digest": "other"}, {"prompt": "piece_judgment"})
    for changes in ({"shares": (("yes", 0.1),)}, {"shares": (("yes", 0.2),)}, *others):
        answer_biases.append_bias(conn, sample(answer_biases.AnswerBiasRow, **changes))
    found = answer_biases.newest_bias(
        conn,
        base_url=row.base_url,
        model=row.model,
        model_digest=row.model_digest,
        prompt=row.prompt,
        prompt_hash=row.prompt_hash,
    )
    assert found is not None
    assert found.shares == (("yes", 0.2),)
