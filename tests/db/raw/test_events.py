import sqlite3

from tests.db.raw.samples import TASK, sample

from clean_room_agent.db.raw import events


def test_what_happened_once_is_kept_once(conn: sqlite3.Connection) -> None:
    row = sample(events.EventRow)
    first = events.append_event_once(conn, row)
    assert events.append_event_once(conn, sample(events.EventRow, timestamp="later")) == first
    assert events.append_event_once(conn, sample(events.EventRow, detail="another")) != first
    assert events.append_event(conn, row) != first
    assert [one.detail for one in events.list_events(conn, TASK)] == ["no sandbox", "another", "no sandbox"]
