import sqlite3

from tests.db.raw.samples import call, sample

from clean_room_agent.db.raw import calls, window_proofs


def test_a_proof_holds_for_this_server_model_and_window_alone(conn: sqlite3.Connection) -> None:
    calls.append_call(conn, call())
    row = sample(window_proofs.WindowProofRow)
    for when in ("2026-01-01", "2026-01-02"):
        window_proofs.append_proof(conn, sample(window_proofs.WindowProofRow, timestamp=when))
    same = {"provider": row.provider, "base_url": row.base_url, "model": row.model, "model_digest": ""}
    found = window_proofs.newest_proof(conn, **same, window=row.window)
    assert found is not None
    assert found.timestamp == "2026-01-02"
    assert window_proofs.newest_proof(conn, **same, window=row.window * 2) is None
    assert window_proofs.newest_proof(conn, **{**same, "model": "other:1b"}, window=row.window) is None
