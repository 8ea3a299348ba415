import os
import resource
import socket
import sys

import pytest

from clean_room_agent.supervisor import below, processes_of, tell

linux = pytest.mark.skipif(sys.platform != "linux", reason="other systems have process groups only")


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
    assert below(12, known) == []


@linux
def test_this_process_is_among_all_and_among_its_user_s() -> None:
    for user in (None, os.getuid()):
        parent, threads, resident = processes_of(user)[os.getpid()]
        assert parent == os.getppid()
        assert threads >= 1
        assert resident > resource.getpagesize()
