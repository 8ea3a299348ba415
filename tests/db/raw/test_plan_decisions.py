import sqlite3

from tests.db.raw.samples import call, sample

from clean_room_agent.db.raw import calls, plan_decisions


def test_a_resumed_run_decides_nothing_twice(conn: sqlite3.Connection) -> None:
    calls.append_call(conn, call())
    row = sample(plan_decisions.PlanDecisionRow)
    other = sample(plan_decisions.PlanDecisionRow, item="c1 c3")
    assert plan_decisions.append_plan_decisions(conn, (row,)) == (1,)
    assert plan_decisions.append_plan_decisions(conn, (row, other)) == (1, 2)
    assert [one.item for one in plan_decisions.list_plan_decisions(conn, "t")] == ["c1 c2", "c1 c3"]
    assert plan_decisions.list_plan_decisions(conn, "u") == ()
