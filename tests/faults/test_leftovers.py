"""Processes that try to outlive their command: a few of the scoreboard's tricks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from testing.faults.leftovers import SHORT, End, Mode, leftovers, marked, wait_until
from testing.sandboxes import installed

CASES: list[tuple[Mode, str, End]] = [
    *(("none", name, end) for name, end in SHORT),
    # Without a sandbox the supervisor ends them, in one the kernel: whether the command or `cra` itself is stopped.
    *(("bwrap", name, end) for name, end in SHORT if end in {"time-out", "kill -9"}),
]


@pytest.mark.parametrize(("mode", "name", "end"), CASES)
def test_nothing_is_left(mode: Mode, name: str, end: End, tmp_path: Path) -> None:
    if mode == "bwrap":
        installed()
    assert leftovers(tmp_path / "case", mode, name, end) == 0


def test_what_is_left_would_be_found() -> None:
    mark = f"mark-of-{os.getpid()}"
    process = subprocess.Popen((sys.executable, "-c", "import time; time.sleep(60)", mark))
    try:
        # Just after the exec, the kernel has no command line yet.
        assert wait_until(lambda: marked(mark) == (process.pid,), seconds=10)
    finally:
        process.kill()
        process.wait()
    assert marked(mark) == ()
