"""Eight processes (four in short) write one record at once, each a few hundred transactions that read before they write.

The control does the same with what Python's sqlite3 does by default, a deferred BEGIN, and no lock file.
"""

import contextlib
import multiprocessing
import sqlite3
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from clean_room_agent.db.connection import connect_file, get_connection
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.runs import EventRow, append_event
from clean_room_agent.db.rows import Connection
from clean_room_agent.errors import RecordError
from clean_room_agent.workspace import Workspace
from testing.faults.figures import Effort, Figure

Way = Literal["ours", "deferred"]
WRITERS: dict[Effort, int] = {"full": 8, "short": 4}
TRANSACTIONS: dict[Effort, int] = {"full": 300, "short": 25}
NOW = "2026-01-01T00:00:00.000Z"
BEFORE = "SELECT count(*) FROM events WHERE task_id = ?"
GO = "go"
BETWEEN = 0.001
"""Seconds between what a transaction reads and what it writes."""


class Written(Struct, frozen=True, kw_only=True):
    """What came of one way to write."""

    tried: int
    errors: int
    rows: int


def run(effort: Effort, work: Path) -> tuple[Figure, ...]:
    """Errors and lost rows of the record, and errors of the control."""
    writers, count = WRITERS[effort], TRANSACTIONS[effort]
    ours = write_at_once(work / "ours", "ours", writers, count)
    control = write_at_once(work / "deferred", "deferred", writers, count)
    return (
        Figure(
            name=f"busy errors with {writers} writers",
            tried=ours.tried,
            found=ours.errors,
            target="0",
            met=ours.errors == 0,
        ),
        Figure(
            name=f"rows lost or doubled with {writers} writers",
            tried=ours.tried,
            found=abs(ours.tried - ours.errors - ours.rows),
            target="0",
            met=ours.rows == ours.tried,
        ),
        Figure(
            name="control: busy errors with a deferred BEGIN",
            tried=control.tried,
            found=control.errors,
            target="more than 0",
            met=control.errors > 0,
        ),
    )


def write_at_once(repo: Path, way: Way, writers: int, count: int) -> Written:
    """`writers` processes have written `count` transactions each into a record below `repo`."""
    repo.mkdir(parents=True)
    with contextlib.closing(get_connection("raw", repo_path=repo)):
        pass
    # Forked, they need not load Python and the program; none goes on before all are there, so each has one task.
    with multiprocessing.get_context("fork").Pool(writers) as pool:
        started = [pool.apply_async(WAYS[way], (repo, str(number), count)) for number in range(writers)]
        while len(list(repo.glob("ready-*"))) < writers:
            time.sleep(0.01)
        (repo / GO).touch()
        errors = sum(writer.get(timeout=600) for writer in started)
    with contextlib.closing(get_connection("raw", repo_path=repo, read_only=True)) as conn:
        rows = conn.execute("SELECT count(*) FROM events").fetchone()[0]
    return Written(tried=writers * count, errors=errors, rows=rows)


def _read_and_write(conn: Connection, task_id: str, number: int) -> None:
    seen = conn.execute(BEFORE, (task_id,)).fetchone()[0]
    # Others write meanwhile, also where nobody waits for a disk.
    time.sleep(BETWEEN)
    detail = f"{number} after {seen}"
    append_event(conn, EventRow(task_id=task_id, kind="written", detail=detail, timestamp=NOW))


def write_ours(repo: Path, task_id: str, count: int) -> int:
    """How many of the writes by way of the record failed."""
    errors = 0
    with Record.open(repo, clock=lambda: NOW) as record:
        _wait(repo, task_id)
        for number in range(count):
            try:
                record.write(_read_and_write, task_id, number)
            except RecordError:
                errors += 1
    return errors


def write_deferred(repo: Path, task_id: str, count: int) -> int:
    """How many transactions that begin as readers failed as busy."""
    errors = 0
    with contextlib.closing(connect_file("raw", Workspace(repo=repo).raw)) as conn:
        _wait(repo, task_id)
        for number in range(count):
            try:
                conn.execute("BEGIN DEFERRED")
                _read_and_write(conn, task_id, number)
                conn.execute("COMMIT")
            except sqlite3.OperationalError:
                errors += 1
                if conn.in_transaction:
                    conn.execute("ROLLBACK")
    return errors


def _wait(repo: Path, task_id: str) -> None:
    (repo / f"ready-{task_id}").touch()
    while not (repo / GO).exists():
        time.sleep(0.005)


WAYS: Mapping[Way, Callable[[Path, str, int], int]] = {"ours": write_ours, "deferred": write_deferred}
