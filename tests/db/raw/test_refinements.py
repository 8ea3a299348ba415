import sqlite3

from tests.db.raw.samples import PASS, TASK, sample

from clean_room_agent.db.raw import refinements


def test_what_was_done_about_failures_stands_under_the_pass(conn: sqlite3.Connection) -> None:
    refinements.append_refinement(conn, sample(refinements.RefinementRow))
    refinements.append_refinement(conn, sample(refinements.RefinementRow, task_id="another:impl:a:b"))
    refinements.append_recovery_decision(conn, sample(refinements.RecoveryRow))
    assert [row.added for row in refinements.list_refinements(conn, TASK)] == [("a.py", "b.py::B")]
    assert [row.rule for row in refinements.list_recovery_decisions(conn, PASS)] == ["retry"]
    assert refinements.list_recovery_decisions(conn, "another") == ()
