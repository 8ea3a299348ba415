import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

RUNG = b"\a\x1b]9;cra plan has ended\a"


def told_to_a_terminal(*words: str, folder: Path) -> bytes:
    """What `cra` writes to standard error, which is a terminal."""
    ours, theirs = pty.openpty()
    try:
        subprocess.run(
            (sys.executable, "-m", "clean_room_agent", *words),
            cwd=folder,
            env=os.environ | {"COLUMNS": "4000"},  # wider than any path, so that no line is folded
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=theirs,
            check=False,
        )
        return os.read(ours, 10_000)
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize(("flags", "rings"), [(("--notify",), True), ((), False)])
def test_the_bell_rings_at_the_end_also_after_an_error(
    tmp_path: Path, flags: tuple[str, ...], rings: bool
) -> None:
    told = told_to_a_terminal("plan", "x", *flags, folder=tmp_path)
    assert b"error: " in told
    assert told.count(RUNG) == rings


def test_nothing_rings_in_a_file(tmp_path: Path) -> None:
    done = subprocess.run(
        (sys.executable, "-m", "clean_room_agent", "plan", "x", "--notify"),
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert b"\a" not in done.stderr + done.stdout
