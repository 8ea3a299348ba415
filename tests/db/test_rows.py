"""Rows that another program has changed."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.db.raw.samples import run, task_run

from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw import passes, runs
from clean_room_agent.db.rows import OF_TASK, moment, task_range
from clean_room_agent.errors import RecordError


@pytest.fixture
def conn(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(connect_file("raw", tmp_path / "raw.sqlite")) as opened:
        runs.append_orchestrator_run(opened, run())
        passes.append_task_run(opened, task_run())
        for (name,) in opened.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            opened.execute(f'DROP TRIGGER "{name}"')
        yield opened


@pytest.mark.parametrize("value", ["\x1b[2J" * 99, 2**62, "[" * 100_000, '{"a":[1,'])
def test_a_value_that_we_never_write_is_named_with_a_remedy(conn: sqlite3.Connection, value: object) -> None:
    conn.execute("PRAGMA ignore_check_constraints = ON")
    conn.execute("UPDATE orchestrator_runs SET status = ?", (value,))
    reads = (
        lambda: runs.list_overviews(conn, limit=9),
        lambda: runs.get_orchestrator_run(conn, run().task_id),
    )
    for read in reads:
        with pytest.raises(RecordError, match="which no cra writes") as caught:
            read()
        assert "status holds" in caught.value.message
        assert len(caught.value.message) < 200
        assert "restore raw.sqlite from a copy" in caught.value.hint


@pytest.mark.parametrize("text", ["", "\x1b[2J", "yesterday", "9" * 5000])
def test_a_time_that_is_none_is_named(text: str) -> None:
    with pytest.raises(RecordError, match="a timestamp holds"):
        moment(text)


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
