"""The spans of a task, oldest first."""

from dataclasses import replace

from clean_room_agent.artifacts.time_kinds import TimeKind
from clean_room_agent.db.raw.time_spans import TimeSpanRow, append_time_span, list_time_spans
from clean_room_agent.db.rows import Connection


def test_the_spans_of_a_task_come_in_the_order_in_which_they_began(conn: Connection) -> None:
    tests = TimeSpanRow(task_id="t1", kind=TimeKind.TESTS, began_at="2026-03-04T05:06:09Z", ended_at="x")
    index = replace(tests, kind=TimeKind.INDEX, began_at="2026-03-04T05:06:07Z")
    for row in (tests, index, replace(index, task_id="t2")):
        append_time_span(conn, row)
    assert [row.kind for row in list_time_spans(conn, "t1")] == [TimeKind.INDEX, TimeKind.TESTS]
