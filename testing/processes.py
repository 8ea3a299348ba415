"""Whole processes seen from outside: their seconds, and the processor time and the memory of all their descendants."""

import contextlib
import ctypes
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

CRA = Path(sys.executable).with_name("cra")
PERIOD_S = 0.01
"""Between two looks at the memory."""
PSS = re.compile(rb"^(Pss|Pss_File):\s+(\d+) kB$", re.MULTILINE)
SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2)."""
IS_SUBREAPER = 37
"""PR_GET_CHILD_SUBREAPER."""


class Spent(Struct, frozen=True, kw_only=True):
    """One process from fork to end, in seconds."""

    wall: float
    processor: float
    """User and system time, with all descendants that were waited for."""
    said: str
    """Its standard output."""
    fault: str = ""
    """Its standard error, where it did not end well."""


class Peak(Struct, frozen=True, kw_only=True):
    """The most memory that a process and its descendants held at one moment, in MB (10**6 bytes).

    Proportional set size: a page that several of them share counts once.
    """

    total: float
    files: float
    """Of it, pages of files mapped to memory, which the kernel can drop."""


def environment(work: Path) -> dict[str, str]:
    """This process's, less what git reads, with compiled modules kept in `work`: a user's are compiled once, too."""
    left_out = {"PYTHONDONTWRITEBYTECODE"}
    kept = {
        key: value for key, value in os.environ.items() if key not in left_out and not key.startswith("GIT_")
    }
    return kept | {"PYTHONPYCACHEPREFIX": str(work.resolve() / "compiled")}


def spend(command: Sequence[str | Path], *, cwd: Path, env: dict[str, str], may_fail: bool = False) -> Spent:
    """What it took until the process had ended.

    Raises:
        SystemExit: it did not end well, and may not fail.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err
        )
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        for stream in (out, err):
            stream.seek(0)
        said, complained = out.read().decode(errors="replace"), err.read().decode(errors="replace")
    fault = f"ended with {process.returncode}: {complained}" if process.returncode else ""
    if fault and not may_fail:
        sys.exit(f"{command[0]} {fault}{said} in {cwd}")
    return Spent(wall=wall, processor=used.ru_utime + used.ru_stime, said=said, fault=fault)


def peak(command: Sequence[str | Path], *, cwd: Path, env: dict[str, str]) -> Peak:
    """The memory of the process and its descendants at its highest, seen every `PERIOD_S` seconds. Linux only.

    Raises:
        SystemExit: it did not end well.
    """
    total, files = 0, 0
    with tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err
        )
        while process.poll() is None:
            looks = [memory_of(member) for member in (process.pid, *descendants(process.pid))]
            now = sum(look[0] for look in looks)
            if now > total:
                total, files = now, sum(look[1] for look in looks)
            time.sleep(PERIOD_S)
        err.seek(0)
        complained = err.read().decode(errors="replace")
    if process.returncode:
        sys.exit(f"{command[0]} ended with {process.returncode} in {cwd}\n{complained}")
    return Peak(total=total * 1024 / 1e6, files=files * 1024 / 1e6)


def memory_of(process: int) -> tuple[int, int]:
    """Proportional set size of one process and the part of it that is mapped files, in KiB; zeros once it is gone."""
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0, 0
    found = {name: int(value) for name, value in PSS.findall(text)}
    return found.get(b"Pss", 0), found.get(b"Pss_File", 0)


def descendants(process: int) -> tuple[int, ...]:
    """Children, their children and so on, as they are now; what has ended and was not waited for is left out."""
    children: dict[int, list[int]] = defaultdict(list)
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and (parent := _living_parent(int(entry.name))) is not None:
            children[parent].append(int(entry.name))
    found: list[int] = []
    waiting = [process]
    while waiting:
        below = children[waiting.pop()]
        found.extend(below)
        waiting.extend(below)
    return tuple(sorted(found))


@contextlib.contextmanager
def adopting_orphans() -> Iterator[None]:
    """Meanwhile, descendants of this process whose parents die become its children, so that none is lost sight of."""
    before = ctypes.c_int()
    _prctl(IS_SUBREAPER, ctypes.byref(before))
    _prctl(SUBREAPER, 1)
    try:
        yield
    finally:
        _prctl(SUBREAPER, before.value)


def _prctl(option: int, value: object) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def pin(count: int) -> None:
    """This process and all that it starts run on `count` processors, so that figures of larger machines compare."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def _living_parent(process: int) -> int | None:
    try:
        text = Path(f"/proc/{process}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, parent = text.rpartition(b")")[2].split()[:2]
    return None if state == b"Z" else int(parent)
