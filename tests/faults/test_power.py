"""Short forms of `benchmarks.faults cuts` and `full_disk`, and that the model of a disk forgets what it should."""

import contextlib
import random
from pathlib import Path

import pytest
from testing.faults import cuts, full_disk
from testing.faults.cut_disk import Disk
from testing.faults.cut_trace import Step

from clean_room_agent.db.connection import connect_file
from clean_room_agent.workspace import Workspace

needs_strace = pytest.mark.skipif(not cuts.has_strace(), reason="strace is not installed")
needs_bubblewrap = pytest.mark.skipif(
    not full_disk.has_bubblewrap(), reason="bubblewrap cannot mount a small file system here"
)
TRIES = 200


@needs_strace
@pytest.mark.timeout(900)
def test_nothing_acknowledged_is_lost_in_a_power_cut(tmp_path: Path) -> None:
    figures = cuts.run("short", tmp_path)
    assert [figure.name for figure in figures if not figure.met] == []
    assert figures[0].tried > 100


def test_a_record_that_the_cut_damaged_has_forgotten_all_keys(tmp_path: Path) -> None:
    workspace = Workspace(repo=tmp_path)
    workspace.create()
    with contextlib.closing(connect_file("raw", workspace.raw)) as conn:
        pages = conn.execute(
            "SELECT rootpage FROM sqlite_master WHERE tbl_name = 'session_archives' AND rootpage > 0"
        ).fetchall()
        size = conn.execute("PRAGMA page_size").fetchone()[0]
    data = bytearray(workspace.raw.read_bytes())
    for (page,) in pages:
        data[(page - 1) * size : page * size] = b"\xff" * size
    workspace.raw.write_bytes(data)
    task = "27969db2-b168-4077-b376-4afd8f3d34b9"
    assert cuts.forgotten(workspace, tmp_path / f"session_{task}.sqlite", {"a", "b"}) == 2


@needs_bubblewrap
@pytest.mark.timeout(900)
def test_a_full_disk_is_said_once_loses_nothing_acknowledged_and_the_run_goes_on(tmp_path: Path) -> None:
    figures = full_disk.run("short", tmp_path)
    assert [figure.name for figure in figures if not figure.met] == []


def after_cuts(disk: Disk) -> list[dict[str, bytes | None]]:
    return [dict(disk.after_cut(random.Random(seed))) for seed in range(TRIES)]


def test_what_was_synced_is_there_after_every_cut_and_what_was_not_may_be_lost(tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    Path(path).write_bytes(b"old")
    disk = Disk(tmp_path)
    disk.do(Step(kind="write", path=path, data=b"new"))
    assert {state[path] for state in after_cuts(disk)} == {b"old", b"new"}
    disk.do(Step(kind="sync", path=path, began=1))
    assert {state[path] for state in after_cuts(disk)} == {b"new"}
    disk.do(Step(kind="write", path=path, data=b"!", offset=5))
    disk.do(Step(kind="sync", path=path, began=2))  # began before the write
    assert {state[path] for state in after_cuts(disk)} == {b"new", b"new\0\0!"}
