"""Index runs that are killed, and what is left of them."""

import contextlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct, field

from clean_room_agent.db.connection import connect_file
from clean_room_agent.errors import CraError
from clean_room_agent.trust import trust
from clean_room_agent.workspace import FOLDER
from testing.index_dump import Rows, dump
from testing.parsed_files import parsed_files, with_function
from testing.processes import CRA, spend
from testing.repositories import git

MARK = "CRA_KILLED_RUN"
"""A variable by which the processes of one run are found, whoever their parent is by then."""
MARGIN = 1.1
"""Kills are drawn from a little more than the usual duration, so that the very end is among them."""
TIMES = 2
"""Runs by which the usual duration is told: the shorter one, as a kill that comes too late tells nothing."""
LINGER_S = 5.0
"""How long what was left running may take to notice that it is alone."""
POLL_S = 0.01

State = Mapping[str, Rows] | None
"""All derived rows by natural keys; None: there is no database."""


class NotWholeError(Exception):
    """A database is damaged."""


class Bench(Struct, frozen=True, kw_only=True):
    """A repository that may be changed, and a folder for what is saved of it."""

    top: Path
    work: Path
    env: dict[str, str]

    def index(self, *arguments: str) -> float:
        """Seconds of a run that is left alone."""
        return spend((CRA, "index", *arguments), cwd=self.top, env=self.env).wall

    def finish(self) -> str:
        """What was wrong with the run after one that was killed; "" if it ended well."""
        return spend((CRA, "index"), cwd=self.top, env=self.env, may_fail=True).fault.strip()

    def restore(self, saved: Path | None) -> None:
        """The program's folder is as it was saved; None: there is none."""
        shutil.rmtree(self.top / FOLDER, ignore_errors=True)
        if saved is not None:
            shutil.copytree(saved, self.top / FOLDER)
            trust(self.top / FOLDER)

    def fresh(self, name: str) -> tuple[Path, State, float]:
        """The saved folder, the rows, and the seconds, of an index built of the tree as it is."""
        self.restore(None)
        seconds = self.index()
        saved = self.work / name
        shutil.rmtree(saved, ignore_errors=True)
        shutil.copytree(self.top / FOLDER, saved)
        return saved, self.state(), seconds

    def state(self) -> State:
        """The rows as whoever comes next would read them; our reading mends nothing, as it is done on a copy.

        Raises:
            NotWholeError: a database is damaged.
        """
        copy = self.work / "looked_at"
        shutil.rmtree(copy, ignore_errors=True)
        if not (self.top / FOLDER).exists():
            return None
        shutil.copytree(self.top / FOLDER, copy)
        try:
            if (copy / "raw.sqlite").exists():
                with contextlib.closing(connect_file("raw", copy / "raw.sqlite")) as conn:
                    check(conn)
            if not (copy / "curated.sqlite").exists():
                return None
            with contextlib.closing(connect_file("curated", copy / "curated.sqlite")) as conn:
                check(conn)
                return dump(conn)
        except (CraError, sqlite3.Error) as exc:
            raise NotWholeError(str(exc)) from exc


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
    seconds: float
    """That a run takes which is not killed."""


class Tally(Struct, kw_only=True):
    """What was seen of one kind of run."""

    seen: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    longest_linger: float = 0.0
    """Seconds until the last process of a killed run was gone."""


def check(conn: sqlite3.Connection) -> None:
    """The database is whole.

    Raises:
        NotWholeError: it is not.
    """
    said = conn.execute("PRAGMA quick_check").fetchone()[0]
    if said != "ok":
        raise NotWholeError(str(said))
    if conn.execute("PRAGMA foreign_key_check").fetchone():
        raise NotWholeError("foreign keys do not hold")


def make_cases(bench: Bench, *, commits: int, timed: bool = True) -> tuple[Case, ...]:
    """First builds, rebuilds, updates after edits and after `commits` commits, each with its states.

    Unless they are `timed`, all are taken to last as long as a first build.
    """
    top = bench.top
    head, older = git(top, "rev-parse", "HEAD"), git(top, "rev-parse", f"HEAD~{commits}")

    def at(commit: str) -> None:
        git(top, "checkout", "-q", "--force", commit)
        git(top, "clean", "-q", "-fd")

    def at_head() -> None:
        at(head)

    def at_edits() -> None:
        at(head)
        edit(top)

    at(older)
    saved_older, state_older, _ = bench.fresh("older")
    at_edits()
    saved_edits, state_edits, _ = bench.fresh("edits")
    at_head()
    saved_head, state_head, usual = bench.fresh("head")
    plans: tuple[tuple[str, tuple[str, ...], Path | None, Callable[[], None], State, State], ...] = (
        ("first build", (), None, at_head, None, state_head),
        ("rebuild (--full) after edits", ("--full",), saved_head, at_edits, state_head, state_edits),
        ("update after edits", (), saved_head, at_edits, state_head, state_edits),
        ("update, edits taken back", (), saved_edits, at_head, state_edits, state_head),
        (f"update after {commits} commits", (), saved_older, at_head, state_older, state_head),
    )
    cases = []
    for name, arguments, saved, arrange, old, new in plans:
        times = []
        for _ in range(TIMES if timed else 0):
            arrange()
            bench.restore(saved)
            times.append(bench.index(*arguments))
        seconds = min(times, default=usual)
        case = Case(
            name=name, arguments=arguments, saved=saved, arrange=arrange, old=old, new=new, seconds=seconds
        )
        cases.append(case)
    return tuple(cases)


def edit(top: Path) -> None:
    """Of the parsed files every fifth has a function more, one is gone, one has moved, and there is a new one."""
    paths = parsed_files(top)
    for path in paths[::5]:
        (top / path).write_bytes(with_function((top / path).read_bytes(), path))
    gone, moved = paths[1], paths[2]
    (top / gone).unlink()
    (top / moved).rename((top / moved).with_stem("moved_away"))
    (top / f"brand_new{Path(gone).suffix}").write_bytes(with_function(b"", gone))


def kill_some(bench: Bench, cases: tuple[Case, ...], *, kills: int, seed: int) -> dict[str, Tally]:
    """What came of `kills` killed runs, by kind of run; moments are drawn by `seed` from each kind's usual duration."""
    tallies = {case.name: Tally() for case in cases}
    chance = random.Random(seed)
    for number in range(kills):
        case = cases[number % len(cases)]
        after, group = chance.uniform(0, case.seconds * MARGIN), chance.random() < 0.5
        tally = tallies[case.name]
        found = list(kill_once(bench, case, tally, mark=f"{os.getpid()}.{number}", after=after, group=group))
        said = f"{number}: {case.name}, {'group' if group else 'process'} killed after {after:.3f} s"
        tally.faults.extend(f"{said}: {fault}" for fault in found)
        print(f"{said}: {'; '.join(found) or 'ok'}", flush=True)
    return tallies


def kill_once(
    bench: Bench, case: Case, tally: Tally, *, mark: str, after: float, group: bool
) -> Iterator[str]:
    """Faults, in words. The tally counts what was found."""
    case.arrange()
    bench.restore(case.saved)
    code = killed(bench, case.arguments, mark=mark, after=after, group=group)
    tally.seen["ended before" if code == 0 else "killed"] += 1
    if code not in {0, -signal.SIGKILL}:
        yield f"ended with {code}"
    yield from wait_for_rest(tally, mark)
    try:
        left = bench.state()
    except NotWholeError as exc:
        yield f"not whole: {exc}"
    else:
        name = _name(left, case)
        tally.seen[name] += 1
        if name == "mixture":
            yield f"neither old nor new: {differences(left, case.old)} / {differences(left, case.new)}"
        if code == 0 and name != "new":
            yield "ended well, and the state is not new"
    yield from next_run(bench, case)


def killed(bench: Bench, arguments: tuple[str, ...], *, mark: str, after: float, group: bool) -> int:
    """The exit code of a run that was killed after so many seconds, or had ended before."""
    with subprocess.Popen(
        (CRA, "index", *arguments),
        cwd=bench.top,
        env=bench.env | {MARK: mark},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            return process.wait(timeout=after)
        except subprocess.TimeoutExpired:
            if group:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            return process.wait()


def wait_for_rest(tally: Tally, mark: str) -> Iterator[str]:
    """Nothing of the run goes on; what still does after `LINGER_S` is a fault, and is ended."""
    began = time.monotonic()
    while rest := marked(mark):
        if time.monotonic() - began > LINGER_S:
            yield f"{len(rest)} processes went on running"
            for process in rest:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            return
        time.sleep(POLL_S)
    tally.longest_linger = max(tally.longest_linger, time.monotonic() - began)


def marked(mark: str) -> tuple[int, ...]:
    """The living processes that were started with the mark, or by one that was."""
    wanted = f"{MARK}={mark}\0".encode()
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
                if wanted in Path(entry.path, "environ").read_bytes():
                    found.append(int(entry.name))
    return tuple(sorted(found))


def next_run(bench: Bench, case: Case) -> Iterator[str]:
    """It finishes with the rows of a fresh build, and nothing lies about any more."""
    if fault := bench.finish():
        yield f"the next run {fault}"
        return
    try:
        now = bench.state()
    except NotWholeError as exc:
        yield f"after the next run not whole: {exc}"
        return
    if now != case.new:
        yield f"after the next run other rows than a fresh build: {differences(now, case.new)}"
    usual = {path.name for path in (bench.work / "head").iterdir()}
    rest = sorted({path.name for path in (bench.top / FOLDER).iterdir()} - usual)
    if rest:
        yield f"left behind after the next run: {', '.join(rest)}"


def differences(one: State, other: State) -> str:
    """The tables that differ, with the number of rows that only one has."""
    if one is None or other is None:
        return "no database"
    return ", ".join(
        f"{name} {len(set(one[name]) ^ set(other[name]))}" for name in one if one[name] != other[name]
    )


def _name(left: State, case: Case) -> str:
    if left == case.old:
        return "old" if left is not None else "absent"
    return "new" if left == case.new else "mixture"
