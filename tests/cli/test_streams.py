"""Standard streams that are closed, full, or read by nobody: no command ends in the middle of its work because of them."""

import fcntl
import io
import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from testing.runs.solving import Project

from clean_room_agent.cli.streams import Output, failure_of
from clean_room_agent.workspace import Workspace

CRA = f"{sys.executable} -m clean_room_agent"
FULL = "error: cannot write to standard output: No space left on device\n"
UNKNOWN = "error: no command 'nonsense'\n  -> cra --help\n"
HANDLES = """\
import os, sys
from clean_room_agent.cli.streams import open_streams
open_streams()
handle = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
print("to nobody", flush=True)
os.write(handle, str((handle, sys.stdin.read())).encode())
"""


def in_shell(line: str, project: Project) -> tuple[int, str, str]:
    """Exit code, output and errors of a line for the shell, which knows `cra`."""
    words = line.replace("cra ", f"{CRA} ", 1)
    done = subprocess.run(
        ["sh", "-c", words],
        cwd=project.top,
        env=project.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("cra --version >&-", (0, "", "")),
        ("cra --version >/dev/full", (1, "", FULL)),
        ("cra --version >/dev/full 2>&1", (1, "", "")),
        ("cra help >&-", (0, "", "")),
        ("cra help <&- >&- 2>&-", (0, "", "")),
        ("cra help >/dev/full", (1, "", FULL)),
        ("cra config --json >/dev/full", (1, "", FULL)),
        ("cra nonsense 2>&-", (2, "", "")),
        ("cra nonsense 2>/dev/full", (2, "error: no command 'nonsense'\n", "")),
        ("cra nonsense >/dev/full", (2, "", UNKNOWN)),
        ("cra nonsense --json >/dev/full", (2, "", UNKNOWN + FULL)),
    ],
)
def test_a_command_ends_as_documented_whatever_its_streams_are(
    line: str, told: tuple[int, str, str], till: Project
) -> None:
    assert in_shell(line, till) == told


def test_no_file_gets_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    file = tmp_path / "opened"
    line = f'exec "{sys.executable}" -c "$0" "{file}" <&- >&- 2>&-'
    subprocess.run(["sh", "-c", line, HANDLES], check=True)
    assert file.read_text() == "(3, '')"


def test_an_index_with_closed_streams_is_sound(till: Project) -> None:
    assert in_shell("cra index <&- >&- 2>&-", till) == (0, "", "")
    with sqlite3.connect(Workspace(repo=till.top).curated) as conn:
        assert conn.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert conn.execute("SELECT count(*) FROM files").fetchone()[0] > 0
    conn.close()


def test_a_reader_that_goes_away_is_no_failure() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    stream = io.TextIOWrapper(io.BufferedWriter(Output(writing, "w")))
    stream.write("to nobody")
    assert failure_of(stream) is None
    stream.close()


def test_a_full_disk_is_a_failure_and_ends_no_writer() -> None:
    with Path("/dev/full").open("wb", buffering=0) as full:
        stream = io.TextIOWrapper(io.BufferedWriter(Output(full.fileno(), "w", closefd=False)))
        stream.write("to nobody")
        failure = failure_of(stream)
        assert failure is not None
        assert failure.strerror == "No space left on device"
        stream.write("more")
        assert failure_of(stream) is failure


def test_output_waits_for_a_pipe_that_another_process_made_non_blocking() -> None:
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETFL, fcntl.fcntl(writing, fcntl.F_GETFL) | os.O_NONBLOCK)
    stream = io.TextIOWrapper(io.BufferedWriter(Output(writing, "w")))
    words = "0123456789" * 50_000
    got: list[bytes] = []
    with open(reading, "rb") as pipe:  # noqa: PTH123 - a handle
        reader = threading.Thread(target=lambda: got.append(pipe.read()))
        reader.start()
        stream.write(words)
        stream.close()
        reader.join()
    assert got == [words.encode()]
