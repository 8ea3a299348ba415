"""`cra index` under `kill -9` at random moments: the index is the old one or the new one, nothing runs on, and the next run ends with
the rows of a fresh build and leaves no file of the killed one behind.

Seen are first builds, rebuilds, and updates after edits and after commits; killed is the process alone, or its whole group.
"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from clean_room_agent.cli.main import run as cra
from clean_room_agent.db.connection import connect_file
from clean_room_agent.errors import CraError
from clean_room_agent.proc import inherited_environment
from clean_room_agent.workspace import FOLDER, trust
from testing.faults.figures import Effort, Figure
from testing.index_dump import Rows, dump
from testing.repositories import commit, git, make_repository, write

KILLS: dict[Effort, int] = {"full": 200, "short": 5}
SEED = 3
MARK = "CRA_KILLED_RUN"
"""A variable by which the processes of one run are found, whoever their parent is by then."""
LINGER_S = 5.0
"""How long what was left running may take to notice that it is alone."""
COMMITS = 3
MODULE = '''\
"""Part {number}."""

from m{before} import part_{before}


def part_{number}(value):
    """What part {before} makes of it."""
    # the order matters, because the other is older
    return part_{before}(value) + {number}
'''

State = Mapping[str, Rows] | None
"""All derived rows by natural keys; None: there is no database."""


class Case(Struct, frozen=True, kw_only=True):
    """A kind of run: where it begins, and where it leads."""

    name: str
    arguments: tuple[str, ...]
    saved: Path | None
    """The program's folder before the run; None: there is none."""
    arrange: Callable[[], None]
    """Makes the tree that is indexed."""
    old: State
    new: State


class Bench:
    """A repository of 40 modules with three commits, and what is saved of its indexes."""

    def __init__(self, work: Path) -> None:
        files = {
            f"m{number}.py": MODULE.format(number=number, before=max(number - 1, 0)) * 8
            for number in range(40)
        }
        self.top, self._work = make_repository(work / "repo", files), work
        for number in range(COMMITS):
            commit(self.top, {f"m{number}.py": MODULE.format(number=number, before=39)}, f"Change {number}")

    def cases(self) -> tuple[Case, ...]:
        """Each with the states that it may leave."""
        head, older = git(self.top, "rev-parse", "HEAD"), git(self.top, "rev-parse", f"HEAD~{COMMITS}")
        saved_older, state_older = self._fresh("older", lambda: self._at(older))
        saved_edits, state_edits = self._fresh("edits", lambda: self._edited(head))
        saved_head, state_head = self._fresh("head", lambda: self._at(head))
        ways: tuple[tuple[str, tuple[str, ...], Path | None, Callable[[], None], State, State], ...] = (
            ("first build", (), None, lambda: self._at(head), None, state_head),
            ("rebuild", ("--full",), saved_head, lambda: self._edited(head), state_head, state_edits),
            ("update after edits", (), saved_head, lambda: self._edited(head), state_head, state_edits),
            ("edits taken back", (), saved_edits, lambda: self._at(head), state_edits, state_head),
            ("update after commits", (), saved_older, lambda: self._at(head), state_older, state_head),
        )
        return tuple(
            Case(name=name, arguments=arguments, saved=saved, arrange=arrange, old=old, new=new)
            for name, arguments, saved, arrange, old, new in ways
        )

    def restore(self, saved: Path | None) -> None:
        """The program's folder is as it was saved; None: there is none."""
        shutil.rmtree(self.top / FOLDER, ignore_errors=True)
        if saved is not None:
            shutil.copytree(saved, self.top / FOLDER)
            trust(self.top / FOLDER)

    def state(self) -> State:
        """The rows as whoever comes next would read them; our reading repairs nothing, as it is done on a copy.

        Raises:
            CraError: a database is damaged.
        """
        copy = self._work / "looked_at"
        shutil.rmtree(copy, ignore_errors=True)
        if not (self.top / FOLDER / "curated.sqlite").exists():
            return None
        shutil.copytree(self.top / FOLDER, copy)
        with contextlib.closing(connect_file("curated", copy / "curated.sqlite")) as conn:
            if conn.execute("PRAGMA quick_check").fetchone()[0] != "ok":
                raise CraError("the index is not whole")
            return dump(conn)

    def index(self, *arguments: str) -> int:
        """The exit code of a run that is left alone."""
        return cra(("index", *arguments, "--repo", str(self.top)))

    def left_behind(self) -> list[str]:
        """Files that no whole run leaves."""
        usual = {path.name for path in (self._work / "head").iterdir()}
        return sorted({path.name for path in (self.top / FOLDER).iterdir()} - usual)

    def _fresh(self, name: str, arrange: Callable[[], None]) -> tuple[Path, State]:
        arrange()
        self.restore(None)
        assert self.index() == 0
        saved = Path(shutil.copytree(self.top / FOLDER, self._work / name))
        return saved, self.state()

    def _at(self, commit: str) -> None:
        git(self.top, "checkout", "-q", "--force", commit)
        git(self.top, "clean", "-q", "-fd")

    def _edited(self, head: str) -> None:
        self._at(head)
        changed = {f"m{n}.py": (self.top / f"m{n}.py").read_text() + "\n\nx = 1\n" for n in range(0, 40, 5)}
        write(self.top, {**changed, "m1.py": None, "brand_new.py": "def f():\n    pass\n"})
        (self.top / "m2.py").rename(self.top / "moved_away.py")


def run(effort: Effort, work: Path) -> tuple[Figure, ...]:
    """What was wrong after the kills; each is told on standard error."""
    bench, rng = Bench(work), random.Random(SEED)
    cases = bench.cases()
    bench.restore(None)
    began = time.monotonic()
    killed_after(bench, (), "timed", None, group=False)
    seconds = time.monotonic() - began
    killed, faults = 0, []
    for number in range(KILLS[effort]):
        case = cases[number % len(cases)]
        case.arrange()
        bench.restore(case.saved)
        mark, after, group = f"{os.getpid()}.{number}", rng.uniform(0, seconds * 1.1), rng.random() < 0.5
        code = killed_after(bench, case.arguments, mark, after, group=group)
        killed += code != 0
        found = [fault for fault in faults_after(bench, case, code, mark) if fault]
        print(*(f"{case.name}, after {after:.3f} s: {fault}" for fault in found), sep="\n", file=sys.stderr)
        faults += found
    name = "index runs killed at a random moment: another state, processes left, or a next run that differs"
    return (Figure(name=name, tried=killed, found=len(faults), target="0", met=killed > 0 and not faults),)


def faults_after(bench: Bench, case: Case, code: int, mark: str) -> Iterator[str]:
    """What is wrong after a run that ended with `code`, and after the next one."""
    if code not in {0, -signal.SIGKILL}:
        yield f"ended with {code}"
    deadline = time.monotonic() + LINGER_S
    while (rest := marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.01)
    for process in rest:
        yield "a process went on running"
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    try:
        left = bench.state()
        if left != case.new and (left != case.old or code == 0):
            yield "neither the old state nor the new one"
        if bench.index() != 0:
            yield "the next run failed"
        elif bench.state() != case.new:
            yield "after the next run other rows than a fresh build"
    except CraError as exc:
        yield str(exc)
    if forgotten := bench.left_behind():
        yield f"left behind after the next run: {forgotten}"


def killed_after(
    bench: Bench, arguments: tuple[str, ...], mark: str, after: float | None, *, group: bool
) -> int:
    """The exit code of a run that was killed after so many seconds, or had ended before."""
    command: tuple[str | Path, ...] = (Path(sys.executable).with_name("cra"), "index", *arguments)
    quiet = subprocess.DEVNULL
    env = inherited_environment(without="GIT_") | {MARK: mark}
    with subprocess.Popen(
        command, cwd=bench.top, env=env, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
    ) as process:
        try:
            return process.wait(timeout=after)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL) if group else process.kill()
            return process.wait()


def marked(mark: str) -> list[int]:
    """The living processes that were started with the mark, or by one that was."""
    wanted, found = f"{MARK}={mark}\0".encode(), []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
                if wanted in Path(entry.path, "environ").read_bytes():
                    found.append(int(entry.name))
    return found
