import contextlib
from pathlib import Path

import pytest
from tests.db.raw.samples import TASK, sample

from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw import runs
from clean_room_agent.db.raw.single_event import write_event
from clean_room_agent.db.rows import Connection
from clean_room_agent.workspace import Workspace


def test_an_event_is_in_the_record_that_it_makes(tmp_path: Path) -> None:
    assert write_event(tmp_path, runs.append_event, sample(runs.EventRow)) == 1
    with contextlib.closing(connect_file("raw", Workspace(repo=tmp_path).raw, read_only=True)) as conn:
        assert [row.detail for row in runs.list_events(conn, TASK)] == ["no sandbox"]


def test_an_event_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def half(conn: Connection) -> None:
        runs.append_event(conn, sample(runs.EventRow))
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        write_event(tmp_path, half)
    with contextlib.closing(connect_file("raw", Workspace(repo=tmp_path).raw, read_only=True)) as conn:
        assert runs.list_events(conn, TASK) == ()
