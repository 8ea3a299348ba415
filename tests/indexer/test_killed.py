"""A killed `cra index` leaves the old state or the new one, and the next run finishes; two hundred of them: `benchmarks`."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace
from testing.faults.index_kills import Bench, kill_some, make_cases
from testing.patience import wait_until
from testing.repositories import commit, make_repository

from clean_room_agent.child_processes import inherited_environment
from clean_room_agent.cli.main import run as cra

MODULE = '''\
"""Part {number}."""

from m{before} import part_{before}


def part_{number}(value):
    """What part {before} makes of it."""
    # the order matters, because the other is older
    return part_{before}(value) + {number}
'''


class BenchHere(Bench, frozen=True, kw_only=True):
    """Runs what is not killed in this process."""

    def index(self, *arguments: str) -> float:
        assert cra(("index", *arguments, "--repo", str(self.top))) == 0
        return 0.0

    def finish(self) -> str:
        code = cra(("index", "--repo", str(self.top)))
        return f"ended with {code}" if code else ""


@pytest.mark.skipif(sys.platform != "linux", reason="the processes of a run are found in /proc")
def test_a_killed_run_leaves_the_old_state_or_the_new_one_and_the_next_finishes(tmp_path: Path) -> None:
    files = {
        f"m{number}.py": MODULE.format(number=number, before=max(number - 1, 0)) * 8 for number in range(40)
    }
    top = make_repository(tmp_path / "repo", files)
    for number in range(3):
        commit(top, {f"m{number}.py": MODULE.format(number=number, before=39)}, f"Change {number}")
    bench = BenchHere(top=top, work=tmp_path, env=inherited_environment(without="GIT_"))
    cases = make_cases(bench, commits=2, timed=False)
    seconds = Bench.index(bench, "--full")
    cases = tuple(replace(case, seconds=seconds) for case in cases)
    tallies = kill_some(bench, cases, kills=5, seed=3)
    assert [fault for tally in tallies.values() for fault in tally.faults] == []
    assert sum(tally.seen["killed"] for tally in tallies.values()) > 0


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
