import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace
from testing.record_faults import record_faults
from tests.db.raw.samples import PASS, SAMPLES, TASK, task_run, validation

from clean_room_agent.artifacts.outcomes import AttemptOutcome
from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw.passes import (
    ATTEMPTS,
    AttemptRow,
    TaskRunOutcome,
    append_attempt,
    append_task_run,
    append_validation,
    finish_task_run,
)


@pytest.fixture
def conn(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(connect_file("raw", tmp_path / "raw.sqlite")) as opened:
        for table, row in SAMPLES:
            table.insert(opened, row)
        yield opened


def accepted(conn: sqlite3.Connection, **changes: object) -> AttemptRow:
    row = ATTEMPTS.select(conn, "ORDER BY id")[0]
    return replace(row, attempt=2, outcome=AttemptOutcome.APPLIED_AND_PASSED, **changes)


def test_a_whole_record_has_no_faults(conn: sqlite3.Connection) -> None:
    append_validation(conn, validation(PASS, append_attempt(conn, accepted(conn))))
    assert record_faults(conn) == ()


def test_an_accepted_attempt_needs_a_successful_test_run(conn: sqlite3.Connection) -> None:
    append_attempt(conn, accepted(conn))
    assert record_faults(conn) == (f"attempt 2 of {PASS} was accepted without a successful test run",)


def test_an_accepted_attempt_names_the_call_that_wrote_it(conn: sqlite3.Connection) -> None:
    append_validation(conn, validation(PASS, append_attempt(conn, accepted(conn, call_id=None))))
    assert record_faults(conn) == (f"attempt 2 of {PASS} was accepted and names no call of its pass",)


def test_a_pass_that_has_ended_stands_in_its_runs_order(conn: sqlite3.Connection) -> None:
    pass_id = f"{TASK}:meta_plan"
    row = append_task_run(conn, task_run(pass_id))
    assert record_faults(conn) == ()
    finish_task_run(
        conn, row, TaskRunOutcome(success=True, total_tokens=0, total_latency_ms=0, completed_at="now")
    )
    assert record_faults(conn) == (f"pass {pass_id} has ended and belongs to no run",)


def test_a_reference_to_nothing_is_a_fault(conn: sqlite3.Connection) -> None:
    conn.execute("PRAGMA foreign_keys = OFF")
    conn.execute("INSERT INTO call_readings (call_id, reading, timestamp) VALUES (99, 'parsed', 'now')")
    assert record_faults(conn) == (
        "row 2 of call_readings refers to a row of retrieval_llm_calls that does not exist",
    )


def test_a_damaged_page_is_a_fault(conn: sqlite3.Connection, tmp_path: Path) -> None:
    path = tmp_path / "raw.sqlite"
    page = conn.execute("SELECT rootpage FROM sqlite_master WHERE name = 'events'").fetchone()[0]
    size = conn.execute("PRAGMA page_size").fetchone()[0]
    conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    conn.close()
    data = bytearray(path.read_bytes())
    data[(page - 1) * size : (page - 1) * size + 64] = b"\xff" * 64
    path.write_bytes(data)
    with closing(connect_file("raw", path, read_only=True)) as damaged:
        assert record_faults(damaged)
