"""Long answers at a terminal, seen from the terminal."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from testing.patience import PATIENCE

ROWS = """
import fcntl, struct, sys, termios
from clean_room_agent.cli.paging import paged
fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
with paged() as console:
    for number in range(int(sys.argv[1])):
        console.print(f"row {number}", style="bold", highlight=False)
"""


def told(tmp_path: Path, rows: int, **environment: str) -> str:
    """What a terminal of 24 lines shows."""
    main, side = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", ROWS, str(rows)],
        cwd=tmp_path,
        env={**os.environ, "TERM": "xterm", **environment},
        stdin=side,
        stdout=side,
        stderr=side,
    )
    os.close(side)
    said = b""
    try:
        while piece := os.read(main, 4096):
            said += piece
    except OSError:  # the other end is closed
        pass
    os.close(main)
    assert process.wait(PATIENCE) == 0, said
    return said.decode()


@pytest.fixture
def pager(tmp_path: Path) -> Path:
    program = tmp_path / "pager"
    program.write_text(f"#!/bin/sh\necho paged by {'$LESS'}\ncat\n")
    program.chmod(0o755)
    return program


def test_what_is_longer_than_the_screen_goes_through_the_pager(tmp_path: Path, pager: Path) -> None:
    said = told(tmp_path, 40, PAGER=str(pager))
    assert "paged by FRX" in said, said
    assert "\x1b[1mrow 39" in said


def test_what_fits_the_screen_does_not(tmp_path: Path, pager: Path) -> None:
    said = told(tmp_path, 20, PAGER=str(pager))
    assert "paged" not in said
    assert "row 19" in said


@pytest.mark.parametrize("command", ["", "cat", "/nowhere/pager", "no-such-pager"])
def test_without_a_pager_all_is_written(tmp_path: Path, command: str) -> None:
    assert "row 39" in told(tmp_path, 40, PAGER=command)


def test_a_pager_in_the_folder_itself_is_not_run(tmp_path: Path, pager: Path) -> None:
    pager.rename(tmp_path / "less")
    assert "paged" not in told(tmp_path, 40, PATH=":", PAGER="less")
