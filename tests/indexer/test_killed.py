"""A killed `cra index` leaves the old state or the new one, and the next run finishes; two hundred of them: `benchmarks.faults`."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from testing.faults import index_kills
from testing.patience import wait_until


@pytest.mark.skipif(sys.platform != "linux", reason="the processes of a run are found in /proc")
def test_a_killed_run_leaves_the_old_state_or_the_new_one_and_the_next_finishes(tmp_path: Path) -> None:
    (figure,) = index_kills.run("short", tmp_path)
    assert (figure.found, figure.met) == (0, True)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a worker notices between two files")
def test_a_worker_ends_with_its_parent_in_the_middle_of_a_file(tmp_path: Path) -> None:
    script = (
        "import os, pathlib, signal, time\n"
        "from clean_room_agent.indexer.workers import WorkerPool\n"
        "def body(channel):\n"
        f"    pathlib.Path({str(tmp_path / 'child')!r}).write_text(str(os.getpid()))\n"
        "    time.sleep(600)\n"
        "WorkerPool(1, tasks=1, body=body)\n"
        f"while not (told := pathlib.Path({str(tmp_path / 'child')!r})).exists() or not told.read_text():\n"
        "    time.sleep(0.01)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL
    child = int((tmp_path / "child").read_text())
    wait_until(lambda: not _lives(child), "the worker ends")


def _lives(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
