import contextlib
from pathlib import Path

import pytest
from tests.db.raw.samples import TASK, sample

from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw import events
from clean_room_agent.db.raw.single_event import write_event
from clean_room_agent.db.rows import Connection
from clean_room_agent.workspace import Workspace


def test_an_event_is_in_the_record_that_it_makes(tmp_path: Path) -> None:
    assert write_event(tmp_path, events.append_event, sample(events.EventRow)) == 1
    with contextlib.closing(connect_file("raw", Workspace(repo=tmp_path).raw, read_only=True)) as conn:
        assert [row.detail for row in events.list_events(conn, TASK)] == ["no sandbox"]


def test_an_event_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def half(conn: Connection) -> None:
        events.append_event(conn, sample(events.EventRow))
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        write_event(tmp_path, half)
    with contextlib.closing(connect_file("raw", Workspace(repo=tmp_path).raw, read_only=True)) as conn:
        assert events.list_events(conn, TASK) == ()
