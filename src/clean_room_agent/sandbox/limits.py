"""Limits for what runs in a sandbox: the kernel's for files (`supervisor.py` sets them), and looking several times a second
for memory and processes, which it does not count for a whole tree, nor processes of root's at all.
"""

import contextlib
import time

from msgspec import Struct

from clean_room_agent.supervisor import below, processes_of

LOOK_SECONDS = 0.1
"""Seconds between two looks; more where looking takes long."""
LOOK_SHARE = 20


class Limits(Struct, frozen=True, kw_only=True):
    """Limits for a command and everything that it starts. 0: no limit."""

    memory: int = 0
    """Bytes held by all its processes together."""
    processes: int = 0
    """Processes and threads at a time, those that ended and were not waited for included."""
    file_size: int = 0
    """Bytes of each file that is written."""


NO_LIMITS = Limits()


class LimitWatch:
    """Says which limit a process and its descendants exceed, whenever it is called, and looks every tenth of a second."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._next = 0.0

    def __call__(self, pid: int) -> str:
        """The name of the limit; "" for none."""
        began = time.monotonic()
        if began < self._next or not (self._limits.memory or self._limits.processes):
            return ""
        excess = find_excess(pid, self._limits)
        now = time.monotonic()
        self._next = now + max(LOOK_SECONDS, LOOK_SHARE * (now - began))
        return excess


def find_excess(pid: int, limits: Limits) -> str:
    """The limit that the process and its descendants exceed now: "memory", "processes", or "" for none."""
    known = processes_of(None)
    tree = [each for each in (pid, *below(pid, known)) if each in known]
    # One that has ended and was not waited for has no thread, and still takes a place.
    if limits.processes and sum(known[each][1] or 1 for each in tree) > limits.processes:
        return "processes"
    # Pages that several share are counted once for each, so a sum within the limit is surely within it.
    if limits.memory and sum(known[each][2] for each in tree) > limits.memory:
        held = sum(_held_by(each, known[each][2]) for each in tree)
        return "memory" if held > limits.memory else ""
    return ""


def _held_by(pid: int, resident: int) -> int:
    """Bytes of the process, with shared pages divided among the processes that share them; `resident` if that is
    unavailable.
    """
    with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup", "rb") as rollup:  # noqa: PTH123
        for line in rollup:
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) << 10
    return resident
