import sqlite3

from tests.db.raw.samples import PASS, call

from clean_room_agent.db.raw import analysis, calls


def test_sums_of_a_spoiled_record_have_no_largest_number(conn: sqlite3.Connection) -> None:
    for _ in range(3):
        calls.append_call(conn, call(prompt_tokens=2**62, completion_tokens=2**62, latency_ms=2**62))
    total = calls.total_of_pass(conn, PASS)
    assert (total.calls, total.prompt_tokens, total.latency_ms) == (3, 3 * 2**62, 3 * 2**62)
    (sums,) = analysis.list_call_sums(conn)
    assert (sums.calls, sums.completion_tokens) == (3, 3 * 2**62)
