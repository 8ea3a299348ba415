import sqlite3

import pytest

from clean_room_agent.db.raw.task_ids import OF_TASK, task_range


@pytest.mark.parametrize(
    ("task_id", "found"),
    [("t", ["t", "t:impl:a:b", "t:meta_plan"]), ("t:impl:a", ["t:impl:a:b"]), ("t_", []), ("%", [])],
)
def test_what_belongs_to_a_task_is_its_own_id_and_those_that_extend_it(
    conn: sqlite3.Connection, task_id: str, found: list[str]
) -> None:
    conn.execute("CREATE TEMP TABLE ids (task_id TEXT)")
    ids = ("t", "t:meta_plan", "t:impl:a:b", "t2", "t2:meta_plan", "tx:meta_plan")
    conn.executemany("INSERT INTO ids VALUES (?)", [(each,) for each in ids])
    query = f"SELECT task_id FROM ids WHERE {OF_TASK} ORDER BY task_id"
    assert [row[0] for row in conn.execute(query, task_range(task_id))] == found
