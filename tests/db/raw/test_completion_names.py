import sqlite3

from tests.db.raw.samples import run

from clean_room_agent.db.raw import runs
from clean_room_agent.db.raw.completion_names import find_runs


def test_runs_are_named_with_what_they_are_the_newest_first(conn: sqlite3.Connection) -> None:
    for name, when in (("aaaa-1", "2026-01-01"), ("aaaa-2", "2026-01-02"), ("bbbb-1", "2026-01-03")):
        runs.append_orchestrator_run(conn, run(name, when))
    assert find_runs(conn, "aaaa", limit=9) == (
        ("aaaa-2", "solve, running: mend it"),
        ("aaaa-1", "solve, running: mend it"),
    )
    assert [name for name, _ in find_runs(conn, "", limit=1)] == ["bbbb-1"]
