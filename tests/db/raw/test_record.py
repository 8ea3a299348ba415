import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.db.raw.samples import run

from clean_room_agent.db.connection import database_path, read_record
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.runs import EVENTS, EventRow, append_event, append_orchestrator_run, list_events
from clean_room_agent.db.rows import Connection
from clean_room_agent.errors import RecordError
from clean_room_agent.workspace import Workspace, hold

WRITER = """
    import os, sys
    from pathlib import Path
    from clean_room_agent.db.raw.runs import EventRow, append_event
    from clean_room_agent.db.raw.record import Record

    record = Record.open(Path(sys.argv[1]), clock=lambda: "now")
    print("open", flush=True)
    sys.stdin.readline()
    for number in range(int(sys.argv[2])):
        record.write(append_event, EventRow(task_id=sys.argv[3], kind=str(number), timestamp="now"))
        print(number, flush=True)
    if sys.argv[4] == "die":
        record.post(append_event, EventRow(task_id=sys.argv[3], kind="posted", timestamp="now"))
        os.kill(os.getpid(), 9)
    record.close()
"""


def event(kind: str, task_id: str = "t") -> EventRow:
    return EventRow(task_id=task_id, kind=kind, timestamp="now")


def kinds(repo: Path, task_id: str = "t") -> list[str]:
    with read_record(repo) as conn:
        return [row.kind for row in list_events(conn, task_id)]


def fail_after_a_row(conn: Connection, kind: str) -> None:
    EVENTS.insert(conn, event(kind))
    raise KeyError(kind)


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    with Record.open(tmp_path, clock=lambda: "2026-01-02T03:04:05Z") as opened:
        yield opened


def test_a_write_is_there_for_others_when_it_returns(tmp_path: Path, record: Record) -> None:
    assert record.write(append_event, event("a")) == 1
    assert kinds(tmp_path) == ["a"]
    assert record.now() == "2026-01-02T03:04:05Z"


def test_what_was_posted_is_committed_by_the_close(tmp_path: Path) -> None:
    with Record.open(tmp_path, clock=lambda: "now") as record:
        record.post(append_event, event("posted"))
    assert kinds(tmp_path) == ["posted"]


def test_a_failing_event_raises_for_its_submitter_only_and_leaves_nothing(
    tmp_path: Path, record: Record
) -> None:
    outcomes: dict[str, object] = {}
    ready = threading.Event()

    def write(kind: str) -> None:
        try:
            outcomes[kind] = record.write(fail_after_a_row if kind.startswith("bad") else write_row, kind)
        except KeyError as exc:
            outcomes[kind] = exc.args[0]

    def write_row(conn: Connection, kind: str) -> str:
        EVENTS.insert(conn, event(kind))
        return "stored"

    def hold_up(_: Connection) -> None:
        ready.wait()

    threads = [threading.Thread(target=record.write, args=(hold_up,))]
    threads += [threading.Thread(target=write, args=(kind,)) for kind in ("good1", "bad1", "good2", "bad2")]
    for thread in threads:
        thread.start()
    ready.set()
    for thread in threads:
        thread.join()
    assert outcomes == {"good1": "stored", "good2": "stored", "bad1": "bad1", "bad2": "bad2"}
    assert sorted(kinds(tmp_path)) == ["good1", "good2"]


def test_what_a_run_was_given_is_recorded_with_its_row_or_not_at_all(record: Record) -> None:
    given = [EventRow(task_id=run().task_id, kind="flags", detail="{}", timestamp="now")]
    record.write(append_orchestrator_run, run(), given)
    with pytest.raises(RecordError):
        record.write(append_orchestrator_run, run(), given)
    assert len(record.write(list_events, run().task_id)) == 1


def test_a_lost_post_is_told_by_the_next_write_which_writes_nothing(tmp_path: Path, record: Record) -> None:
    record.post(fail_after_a_row, "lost")
    record.post(append_event, event("kept"))
    with pytest.raises(RecordError, match="a posted event was lost") as caught:
        record.write(append_event, event("refused"))
    assert isinstance(caught.value.__cause__, KeyError)
    record.write(append_event, event("later"))
    assert kinds(tmp_path) == ["kept", "later"]


def test_the_error_names_the_lock_that_somebody_holds(tmp_path: Path) -> None:
    with Record.open(tmp_path, clock=lambda: "now", patience=0.05) as record:
        with (
            hold(Workspace(repo=tmp_path).raw_lock),
            pytest.raises(RecordError, match=r"process \d+ holds the record"),
        ):
            record.write(append_event, event("a"))
        assert record.write(append_event, event("b")) == 1


def test_a_full_database_loses_nothing_that_was_acknowledged(tmp_path: Path, record: Record) -> None:
    def limit_pages(conn: Connection) -> None:
        pages = conn.execute("PRAGMA page_count").fetchone()[0]
        conn.execute(f"PRAGMA max_page_count = {pages + 5}")

    def lift_the_limit(conn: Connection) -> None:
        conn.execute("PRAGMA max_page_count = 1000000")

    record.write(limit_pages)
    acknowledged: list[int] = []

    def fill() -> None:
        while True:
            acknowledged.append(record.write(append_event, event("x" * 500)))

    with pytest.raises(RecordError, match="full"):
        fill()
    assert len(kinds(tmp_path)) == len(acknowledged) > 0
    record.write(lift_the_limit)
    record.write(append_event, event("after"))
    assert len(kinds(tmp_path)) == len(acknowledged) + 1


def test_eight_threads_write_without_a_busy_error_each_in_its_order(tmp_path: Path, record: Record) -> None:
    failures: list[BaseException] = []

    def write(name: str) -> None:
        try:
            for number in range(50):
                record.write(append_event, event(str(number), name))
        except Exception as exc:  # noqa: BLE001 - reported below
            failures.append(exc)

    names = [f"thread{number}" for number in range(8)]
    threads = [threading.Thread(target=write, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for name in names:
        assert kinds(tmp_path, name) == [str(number) for number in range(50)]


def start(repo: Path, count: int, name: str, end: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), str(repo), str(count), name, end],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    return process


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    with start(tmp_path, 100, "one", "close") as one, start(tmp_path, 100, "two", "close") as two:
        for process in (one, two):
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        for process in (one, two):
            process.communicate()
            assert process.returncode == 0
    for name in ("one", "two"):
        assert kinds(tmp_path, name) == [str(number) for number in range(100)]


def test_a_killed_process_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    with start(tmp_path, 20, "victim", "die") as process:
        output, _ = process.communicate("\n")
        assert process.returncode == -9
    acknowledged = output.split()
    found = kinds(tmp_path, "victim")
    assert found[: len(acknowledged)] == acknowledged
    assert len(acknowledged) == 20
    with Record.open(tmp_path, clock=lambda: "now") as record:
        record.write(append_event, event("goes on", "victim"))
    assert kinds(tmp_path, "victim")[-1] == "goes on"
    assert database_path("raw", tmp_path).is_file()
