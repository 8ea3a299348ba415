"""Running `cra` in a forked process that dies at a chosen journal point: before something durable is written.

A journal point is a commit of a database, a git command that writes, a file that is renamed or removed, a folder that is
removed. The program itself knows nothing of this: the child's doors are replaced after the fork.
"""

import contextlib
import os
import shutil
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from clean_room_agent import proc
from clean_room_agent.cli import check, solve  # noqa: F401 - loaded before the forks, which then begin at once
from clean_room_agent.cli.main import run
from testing.processes import adopting_orphans
from testing.runs.solving import Project

WRITES = frozenset(
    {"update-ref", "commit-tree", "write-tree", "worktree", "read-tree", "update-index", "clean"}
)
"""Git's commands that write."""
STATEMENTS = ("INSERT", "UPDATE", "DELETE", "REPLACE")
GONE_SECONDS = 10.0


class Ended(Struct, frozen=True, kw_only=True):
    """How a process ended; negative codes are signals."""

    code: int
    points: int
    """Journal points that it came by."""
    out: str
    left: int
    """Processes that were still there some seconds after its end."""


class Points:
    """Counts journal points, and kills the process at one of them."""

    def __init__(self, log: int, victim: int) -> None:
        self._log = log
        self._victim = victim
        self._count = 0
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._write = os.write  # as it is before others watch it

    def reach(self) -> None:
        """Something durable is about to be written."""
        if os.getpid() != self._process:
            return  # a worker that reads files for the index
        with self._lock:
            self._count += 1
            self._write(self._log, b".")
            if self._count == self._victim:
                os.kill(os.getpid(), signal.SIGKILL)


def run_killed(
    project: Project,
    args: Sequence[str],
    *,
    point: int = 0,
    after: float | None = None,
    watch: Callable[[Points], None] | None = None,
) -> Ended:
    """`cra` with `args` in the project; killed before its journal point `point` (1-based; 0: none), or after so many
    seconds. All that it started is gone, or counted as left. `watch` decides in the child what a journal point is.
    """
    output = project.home / "output.txt"
    with adopting_orphans():
        others = _children()
        counted, log = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(counted)
            _live(project, args, output, Points(log, point), watch or _watch)
        os.close(log)
        killer = threading.Timer(0.0 if after is None else after, _kill, (child,))
        if after is not None:
            killer.start()
        points = _read_all(counted)
        _, status = os.waitpid(child, 0)
        killer.cancel()
        left = _wait_for_orphans(others)
    text = output.read_text(encoding="utf-8", errors="replace")
    return Ended(code=os.waitstatus_to_exitcode(status), points=points, out=text, left=left)


def _live(
    project: Project, args: Sequence[str], output: Path, points: Points, watch: Callable[[Points], None]
) -> None:
    """Never returns."""
    code = 70
    try:
        state = {"XDG_STATE_HOME": project.environment()["XDG_STATE_HOME"]}
        os.environ.clear()
        os.environ.update(project.environment() | state)
        handle = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        watch(points)
        code = run((*args, "--repo", str(project.top)))
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _watch(points: Points) -> None:
    class Watched(sqlite3.Connection):
        def execute(self, sql: str, *rest: Any) -> sqlite3.Cursor:
            word = sql.lstrip()[:8].upper()
            if word.startswith("COMMIT") or (not self.in_transaction and word.startswith(STATEMENTS)):
                points.reach()
            return super().execute(sql, *rest)

    connect = sqlite3.connect
    sqlite3.connect = lambda *args, **options: connect(*args, factory=Watched, **options)  # type: ignore[assignment]
    before = proc.run

    def run_git(command: Any, **options: Any) -> Any:
        if command[0] == "git" and WRITES.intersection(command):
            points.reach()
        return before(command, **options)

    proc.run = run_git
    for owner, name in ((Path, "replace"), (Path, "unlink"), (shutil, "rmtree")):
        announce(owner, name, points)


def always(*_: object, **__: object) -> bool:
    """For any arguments."""
    return True


def announce(owner: Any, name: str, points: Points, *, when: Callable[..., bool] = always) -> None:
    """Let each call of the function be a journal point, if `when` holds for its arguments."""
    original: Callable[..., Any] = getattr(owner, name)

    def announced(*args: Any, **options: Any) -> Any:
        if when(*args, **options):
            points.reach()
        return original(*args, **options)

    setattr(owner, name, announced)


def _kill(child: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


def _read_all(handle: int) -> int:
    """How many bytes came before the end of the file."""
    count = 0
    while chunk := os.read(handle, 4096):
        count += len(chunk)
    os.close(handle)
    return count


def _children() -> frozenset[int]:
    """The processes whose parent this one is."""
    own, found = str(os.getpid()), set()
    for place in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # After the name, which may hold anything, in brackets: state, parent.
            if place.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1] == own:
                found.add(int(place.parent.name))
    return frozenset(found)


def _wait_for_orphans(others: frozenset[int]) -> int:
    """How many of the dead process's children outlive it for long; all of its children come to this process.

    `others` are this process's own, which are let be.
    """
    until = time.monotonic() + GONE_SECONDS
    while orphans := _children() - others:
        for pid in orphans:
            os.waitpid(pid, os.WNOHANG)
        if time.monotonic() >= until:
            return len(orphans)
        time.sleep(0.005)
    return 0
