import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from testing.patience import PATIENCE

from clean_room_agent import proc, supervisor
from clean_room_agent.supervisor import (
    AT_ONCE_ELSEWHERE,
    FIRST_PID,
    Burst,
    below,
    find_excess,
    machine_count,
    processes_of,
    read_command,
    tell,
)

linux = pytest.mark.skipif(sys.platform != "linux", reason="other systems have process groups only")
BOUNDS, ARGUMENTS, VARIABLES = [1 << 30, 20, 0], [b"sh", b"-c", b"echo $A"], {b"A": b"b=c", b"E": b""}


@contextlib.contextmanager
def saying(words: bytes) -> Iterator[int]:
    """The socket from which a supervisor reads `words`, and then nothing more."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(words)
        ours.shutdown(socket.SHUT_WR)
        yield theirs.fileno()


def command_bytes() -> bytes:
    fields = [str(bound).encode() for bound in BOUNDS] + [str(len(ARGUMENTS)).encode(), *ARGUMENTS]
    body = b"\0".join([*fields, *(name + b"=" + value for name, value in VARIABLES.items())])
    return b"%d\n" % len(body) + body


def test_a_command_is_read_as_it_was_said() -> None:
    with saying(command_bytes()) as control:
        assert read_command(control) == (BOUNDS, ARGUMENTS, VARIABLES)


@pytest.mark.parametrize("length", [0, 1, 3, 20])
def test_a_command_that_breaks_off_ends_the_supervisor(length: int) -> None:
    with saying(command_bytes()[:length]) as control, pytest.raises(SystemExit) as ended:
        read_command(control)
    assert ended.value.code == 0


def test_what_nobody_hears_is_no_error() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        tell(theirs.fileno(), "start 1\n")
        assert ours.recv(100) == b"start 1\n"
        ours.close()
        tell(theirs.fileno(), "exit 0\n")
        with pytest.raises(BrokenPipeError):
            os.write(theirs.fileno(), b"exit 0\n")


def test_descendants_come_with_parents_before_their_children() -> None:
    parents = {10: 1, 11: 10, 12: 11, 13: 10, 20: 1, 21: 20}
    known = {pid: (parent, 1, 0) for pid, parent in parents.items()}
    assert below(10, known) == [11, 13, 12]
    assert below(20, known) == [21]
    assert below(12, known) == []


@linux
def test_this_process_is_among_all_and_among_its_user_s() -> None:
    for user in (None, os.getuid()):
        parent, threads, resident = processes_of(user)[os.getpid()]
        assert parent == os.getppid()
        assert threads >= 1
        assert resident > 1 << 20


@linux
@pytest.mark.parametrize(
    ("bounds", "excess"),
    [
        ([0, 0, 0], ""),
        ([100, 2, 0], ""),
        ([100, 1, 0], "processes 2"),
        ([99, 0, 0], "memory 100"),
        ([79, 1, 0], "processes 2"),
    ],
)
def test_a_bound_that_is_exceeded_is_told_with_how_far(
    bounds: list[int], excess: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes without descendants of their own: one holds 40 bytes, the other 60."""
    known = {-2: (os.getpid(), 1, 40), -3: (-2, 1, 60), -4: (1, 9, 10**9)}
    monkeypatch.setattr(supervisor, "processes_of", lambda _: known)
    assert find_excess(bounds) == excess


class Machine:
    """A machine whose figures are set: processes, number of the newest, seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.figures = (100, 5000, 0.0)
        monkeypatch.setattr(supervisor, "machine_count", lambda: self.figures[:2])
        monkeypatch.setattr(supervisor, "time", SimpleNamespace(monotonic=lambda: self.figures[2]))


def test_processes_that_came_and_went_between_two_looks_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    burst = Burst()
    machine.figures = (130, 5030, 0.1)
    assert (burst.most(), burst.now) == (30 - 20 - AT_ONCE_ELSEWHERE, 30)
    burst.set_own(25)
    machine.figures = (130, 8030, 0.2)
    assert (burst.most(), burst.now) == (25 + 3000 - 20 - AT_ONCE_ELSEWHERE, 25)
    machine.figures = (900, 8100, 0.3)
    assert (burst.most(), burst.now) == (795 - 40 - AT_ONCE_ELSEWHERE, 795)
    machine.figures = (130, 8400, 3.1)
    burst.set_own(25)
    machine.figures = (130, 8700, 5.1)
    assert burst.most() < 1000


@linux
def test_numbers_that_began_again_are_no_fewer_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    most = int(Path("/proc/sys/kernel/pid_max").read_text(encoding="ascii"))
    machine.figures = (100, most - 40, 0.0)
    burst = Burst()
    machine.figures = (100, FIRST_PID + 60, 0.0)
    assert burst.most() == 100 - AT_ONCE_ELSEWHERE


@linux
def test_the_machine_has_processes() -> None:
    total, newest = machine_count()
    assert total >= len(processes_of(os.getuid()))
    assert newest > 0


@linux
@pytest.mark.parametrize("said", [b"", b"12", b"400\n0\0"])
def test_a_supervisor_whose_program_dies_before_it_says_what_to_run_leaves(said: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = (sys.executable, "-I", "-S", str(proc.SUPERVISOR), str(theirs.fileno()))
        with subprocess.Popen(command, pass_fds=(theirs.fileno(),)) as child:
            theirs.close()
            ours.sendall(said)
            ours.close()
            try:
                assert child.wait(PATIENCE) == 0
            finally:
                child.kill()
