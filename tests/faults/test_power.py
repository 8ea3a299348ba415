"""Short forms of `benchmarks.faults cuts` and `full_disk`, and that the model of a disk forgets what it should."""

import contextlib
import random
from pathlib import Path

import pytest
from testing.faults import cuts, full_disk
from testing.faults.cut_disk import Disk
from testing.faults.cut_trace import Step, read_trace

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


def test_a_large_write_may_be_torn_at_sectors(tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    Path(path).write_bytes(b"a" * 4096)
    disk = Disk(tmp_path)
    disk.do(Step(kind="write", path=path, data=b"b" * 4096))
    found = {state[path] for state in after_cuts(disk)}
    assert len(found) > 20
    assert all(
        set(state[at : at + 512]) in ({97}, {98}) for state in found if state for at in range(0, 4096, 512)
    )


def test_a_name_outlives_the_cut_when_its_folder_was_synced(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    new, file = str(tmp_path / ".part"), str(tmp_path / "file")
    disk = Disk(tmp_path)
    for number, step in enumerate(
        (
            Step(kind="open", path=new, creates=True),
            Step(kind="write", path=new, data=b"new"),
            Step(kind="sync", path=new, began=2),
            Step(kind="rename", path=new, target=file),
        )
    ):
        disk.do(step)
        assert all(state[file] == b"old" for state in after_cuts(disk)) == (number < 3)
    disk.do(Step(kind="sync", path=str(tmp_path), began=4))
    assert all(state == {file: b"new"} for state in after_cuts(disk))


def test_a_trace_is_read_across_threads_and_relative_names(tmp_path: Path) -> None:
    def text(words: str) -> str:
        return "".join(f"\\x{byte:02x}" for byte in words.encode())

    top, acks = "/top", "/acks"
    lines = (
        f'7 openat(AT_FDCWD<{text("/top/d")}>, "{text("../a ä")}", O_RDWR|O_CREAT, 0600) = 3<{text("/top/a ä")}>',
        f"7 fdatasync(3<{text('/top/a ä')}> <unfinished ...>",
        f'8 pwrite64(3<{text("/top/a ä")}>, "{text("xy")}", 2, 512) = 2',
        "7 <... fdatasync resumed>) = 0",
        f'7 rename("{text("../a ä")}", "{text("b")}") = 0',
        f'7 write(9<{text("/acks")}>, "{text(chr(123) + chr(125))}", 3) = 3',
        f'7 unlink("{text("/elsewhere")}") = 0',
        f'7 unlink("{text("b")}") = -1 ENOENT (No such file or directory)',
    )
    (tmp_path / "trace").write_text("\n".join(lines) + "\n")
    steps = read_trace(tmp_path / "trace", top=Path(top), acks=Path(acks))
    assert [(step.kind, step.path, step.offset, step.began) for step in steps] == [
        ("open", "/top/a ä", 0, 0),
        ("write", "/top/a ä", 512, 0),
        ("sync", "/top/a ä", 0, 1),
        ("rename", "/top/a ä", 0, 0),
        ("ack", "", 0, 0),
    ]
    assert steps[3].target == "/top/d/b"
