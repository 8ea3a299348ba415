"""What the benchmark of killed runs would notice: damage, a mixture of states, processes that go on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.killed_index.__main__ import render
from testing.faults.index_kills import (
    MARK,
    Bench,
    Case,
    NotWholeError,
    Tally,
    differences,
    edit,
    marked,
    next_run,
)
from testing.index_dump import index
from testing.repositories import commit, make_repository

from clean_room_agent.child_processes import inherited_environment
from clean_room_agent.workspace import FOLDER, Workspace

FILES = {f"m{number}.py": f"def f{number}(): pass\n" for number in range(6)}


def make_bench(tmp_path: Path) -> Bench:
    top = make_repository(tmp_path / "repo", FILES)
    return Bench(top=top, work=tmp_path / "work", env=inherited_environment(without="GIT_"))


def nothing() -> None:
    return


def test_the_state_is_read_without_a_trace(tmp_path: Path) -> None:
    bench = make_bench(tmp_path)
    assert bench.state() is None
    index(bench.top)
    before = sorted(path.name for path in (bench.top / FOLDER).iterdir())
    first = bench.state()
    assert first is not None
    assert first == bench.state()
    assert sorted(path.name for path in (bench.top / FOLDER).iterdir()) == before


def test_another_tree_is_another_state(tmp_path: Path) -> None:
    bench = make_bench(tmp_path)
    index(bench.top)
    before = bench.state()
    commit(bench.top, {"m1.py": None}, "Take one away")
    index(bench.top)
    assert "files 1" in differences(before, bench.state())
    assert differences(before, before) == ""
    assert differences(before, None) == "no database"


def test_a_damaged_database_is_noticed(tmp_path: Path) -> None:
    bench = make_bench(tmp_path)
    index(bench.top)
    with Workspace(repo=bench.top).curated.open("r+b") as file:
        file.seek(4096)
        file.write(b"\x55" * 8192)
    with pytest.raises(NotWholeError):
        bench.state()


@pytest.mark.skipif(sys.platform != "linux", reason="environments are read from /proc")
def test_a_process_is_found_by_its_mark_when_its_parent_is_gone() -> None:
    code = "import os\nif os.fork():\n    os._exit(0)\ninput()\n"
    mark = f"{os.getpid()}.test"
    env = dict(os.environ) | {MARK: mark}
    read, write = os.pipe()
    process = subprocess.Popen((sys.executable, "-c", code), env=env, stdin=read)
    os.close(read)
    assert process.wait() == 0
    assert len(marked(mark)) == 1
    assert marked(f"{mark}.other") == ()
    os.close(write)


def test_other_rows_and_forgotten_files_after_the_next_run_are_faults(tmp_path: Path) -> None:
    bench = make_bench(tmp_path)
    saved, state, _ = bench.fresh("head")
    assert state is not None
    (bench.top / FOLDER / "curated.sqlite.part").write_bytes(b"")
    case = Case(
        name="c",
        arguments=(),
        saved=saved,
        arrange=nothing,
        old=state,
        new=dict(state) | {"files": []},
        seconds=1.0,
    )
    assert [fault.partition(":")[0] for fault in next_run(bench, case)] == [
        "after the next run other rows than a fresh build",
        "left behind after the next run",
    ]


def test_edits_leave_a_file_out_move_one_and_add_one(tmp_path: Path) -> None:
    bench = make_bench(tmp_path)
    edit(bench.top)
    assert sorted(path.name for path in bench.top.glob("*.py")) == [
        "brand_new.py",
        "m0.py",
        "m3.py",
        "m4.py",
        "m5.py",
        "moved_away.py",
    ]


def test_the_table_counts_runs_and_names_faults() -> None:
    good, bad = Tally(longest_linger=0.01), Tally(faults=["3: it went on"])
    good.seen.update(("killed", "old", "ended before", "new"))
    bad.seen.update(("killed", "mixture"))
    text = render({"first": good, "second": bad}, "small")
    assert "| all | 3 | 2 | 1 | 0 | 1 | 1 | 1 | 0.01 | 1 |" in text
    assert text.endswith("- 3: it went on")
