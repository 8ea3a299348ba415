"""Limits of what runs in a sandbox, here without one."""

import signal
import sys
from pathlib import Path

import pytest
from testing.patience import PATIENCE

from clean_room_agent import proc
from clean_room_agent.sandbox.limits import Limits, LimitWatch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there are no sandboxes elsewhere")
HOLDS = "import time; held = b'x' * (300 << 20); print('held', flush=True); time.sleep(600)"
SHARED = (
    "import os, time; held = b'x' * (60 << 20)\nfor _ in range(5): os.fork() or time.sleep(2)\ntime.sleep(1)"
)
FORKS = "import os, time\nfor _ in range(40): os.fork() or time.sleep(600)\ntime.sleep(600)"
ZOMBIES = "import os, time\nfor _ in range(40): os.fork() or os._exit(0)\ntime.sleep(600)"
ONE_BY_ONE = "import os\nfor _ in range(700): os.waitpid(os.fork() or os._exit(0), 0)"


def limited(script: str, place: Path, limits: Limits) -> proc.Completed:
    return proc.run(
        (sys.executable, "-I", "-S", "-c", script),
        cwd=place,
        timeout=PATIENCE,
        check=False,
        contain=False,
        rlimits=(limits.file_size, limits.processes),
        watch=LimitWatch(limits),
    )


def test_what_holds_too_much_memory_is_killed_and_said_so(tmp_path: Path) -> None:
    done = limited(HOLDS, tmp_path, Limits(memory=100 << 20))
    assert (done.exceeded, done.timed_out, done.returncode) == ("memory", False, -signal.SIGKILL)


def test_pages_that_children_share_are_counted_once(tmp_path: Path) -> None:
    done = limited(SHARED, tmp_path, Limits(memory=200 << 20))
    assert (done.exceeded, done.returncode) == ("", 0)


@pytest.mark.parametrize("script", [FORKS, ZOMBIES])
def test_too_many_processes_are_killed_and_said_so(script: str, tmp_path: Path) -> None:
    done = limited(script, tmp_path, Limits(processes=20))
    assert not done.timed_out
    assert done.exceeded == "processes" or b"BlockingIOError" in done.stderr


def test_many_processes_one_after_the_other_do_not_count_together(tmp_path: Path) -> None:
    done = limited(ONE_BY_ONE, tmp_path, Limits(processes=300))
    assert (done.exceeded, done.returncode) == ("", 0)


def test_a_file_does_not_grow_beyond_its_bound(tmp_path: Path) -> None:
    grow = "with open('f', 'wb') as file: file.write(b'x' * 5_000_000)"
    done = limited(grow, tmp_path, Limits(file_size=1_000_000))
    assert done.returncode != 0
    assert (tmp_path / "f").stat().st_size == 1_000_000
