"""Power cuts: a real run of `cra` is traced, and what the disk may hold after a cut at a random step is looked at.

strace records each write, sync and change of a name below the repository, and each acknowledgement (`Record.write`
returned, a file was written, a run said that its branch stands). A model of a disk (`cut_disk`) does the same again up to
a random step and then loses what was not synced: all of it, its end, any of it, or any sectors of 512 or 4,096 bytes.
What is left is opened. The control is the same run with the record at `synchronous=NORMAL`; in short, the same trace
without the record's syncs.
"""

import contextlib
import hashlib
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw.runs import get_archive
from clean_room_agent.db.session import archived_states
from clean_room_agent.errors import CraError
from clean_room_agent.workspace import Workspace
from testing.faults.cut_disk import Disk
from testing.faults.cut_trace import STRACE, Step, read_trace
from testing.faults.figures import Effort, Figure
from testing.record_faults import record_faults
from testing.repositories import make_repository
from testing.runs.solving import TILL

CUTS: dict[Effort, int] = {"full": 100, "short": 8}
SEED = 20
ROOT = Path(__file__).parents[2]


class Traced(Struct, frozen=True, kw_only=True):
    """A run that was traced: what stood before, and what was done."""

    before: Path
    """A copy of the repository before the run."""
    top: Path
    steps: tuple[Step, ...]


class Losses(Struct, kw_only=True):
    """What was found wrong after the cuts, counted, with the first of each kind in words."""

    cuts: int = 0
    promised: int = 0
    """Rows that were acknowledged, over all cuts."""
    kept: int = 0
    """Keys of sessions that were acknowledged, over all cuts."""
    rows: int = 0
    damaged: int = 0
    others: int = 0
    keys: int = 0
    files: int = 0
    branches: int = 0
    first: dict[str, str] = field(default_factory=dict)

    def found(self, kind: str, count: int, words: str) -> None:
        """`count` more of a kind."""
        if count:
            setattr(self, kind, getattr(self, kind) + count)
            self.first.setdefault(kind, words)


def has_strace() -> bool:
    """Whether this machine can trace."""
    return shutil.which("strace") is not None


def run(effort: Effort, work: Path) -> tuple[Figure, ...]:
    """Losses over the cuts of one run, and those of the control."""
    if not has_strace():
        raise SystemExit("the cuts need strace: apt install strace")
    count = CUTS[effort]
    traced = trace_run(work / "full", "FULL")
    full = cut(traced, count, work / "full-disk")
    name = "synchronous=NORMAL" if effort == "full" else "its syncs left out"
    without = trace_run(work / "normal", "NORMAL") if effort == "full" else _without_syncs(traced)
    control = cut(without, count, work / "normal-disk")
    for record, losses in (("synchronous=FULL", full), (name, control)):
        for kind, words in losses.first.items():
            print(f"{record}: {kind}: {words}", file=sys.stderr)
    return (
        _figure("acknowledged rows lost in power cuts", full.promised, full.rows),
        _figure("acknowledged keys of sessions lost in power cuts", full.kept, full.keys),
        _figure("cuts that damaged the record, or broke a run's chain", full.cuts, full.damaged),
        _figure("cuts that damaged a session or an index", full.cuts, full.others),
        _figure(
            "cuts after which a written file was not whole, or not the one acknowledged",
            full.cuts,
            full.files,
        ),
        _figure("cuts that lost the branch of an ended run", full.cuts, full.branches),
        Figure(
            name=f"control: rows lost with {name}",
            tried=control.promised,
            found=control.rows,
            target="more than 0",
            met=control.rows > 0,
        ),
    )


def _figure(name: str, tried: int, found: int) -> Figure:
    # What was never tried is not met: this figure stood at 0 of 0 once what it counts had got another name.
    return Figure(name=name, tried=tried, found=found, target="0", met=tried > 0 and found == 0)


def _without_syncs(traced: Traced) -> Traced:
    log = f"{Workspace(repo=traced.top).raw}-wal"
    steps = (step for step in traced.steps if not (step.kind == "sync" and step.path == log))
    return replace(traced, steps=tuple(steps))


def trace_run(work: Path, synchronous: str) -> Traced:
    """A run in a repository below `work`, traced.

    Raises:
        ValueError: the trace does not lead to the files that the run left: it cannot be relied on.
    """
    top = make_repository(work / "till", TILL)
    before = Path(shutil.copytree(top, work / "before", symlinks=True))
    acks, trace = work / "acks", work / "trace"
    command = (
        *STRACE,
        "-o",
        str(trace),
        sys.executable,
        "-m",
        "testing.faults.cut_run",
        str(top),
        str(acks),
    )
    subprocess.run((*command, synchronous), cwd=ROOT, check=True, timeout=900)
    traced = Traced(before=before, top=top, steps=read_trace(trace, top=top, acks=acks))
    require_same(traced)
    return traced


def require_same(traced: Traced) -> None:
    """The steps, all done and nothing lost, lead to what stands there."""
    disk = disk_before(traced)
    for step in traced.steps:
        disk.do(step)
    seen = {path: data for path, data in disk.seen().items() if not path.endswith("-shm")}
    there = {
        str(path): path.read_bytes()
        for path in traced.top.rglob("*")
        if path.is_file() and not path.name.endswith("-shm")
    }
    differing = sorted(path for path in {*seen, *there} if seen.get(path) != there.get(path))
    if differing:
        raise ValueError(f"the trace does not tell all that was done to {differing}")


def disk_before(traced: Traced) -> Disk:
    """A disk that holds what stood before, under the paths of the run."""
    aside = traced.top.with_name("after")
    traced.top.rename(aside)
    try:
        shutil.copytree(traced.before, traced.top, symlinks=True)
        return Disk(traced.top)
    finally:
        shutil.rmtree(traced.top)
        aside.rename(traced.top)


def cut(traced: Traced, count: int, work: Path, *, seed: int = SEED) -> Losses:
    """The power goes at `count` random steps, each time once more from the same run; what that lost."""
    rng = random.Random(seed)
    # A fourth of the cuts comes after all was promised, where nothing at all may be lost.
    end = next(number for number, step in enumerate(traced.steps, start=1) if "branch" in step.told)
    points = sorted(rng.randint(end if n % 4 == 0 else 1, len(traced.steps)) for n in range(count))
    disk, losses = disk_before(traced), Losses()
    told: dict[str, Any] = {"rows": {}, "files": {}, "branches": [], "states": {}}
    written: dict[str, list[str]] = {}
    for step in traced.steps:
        if "file" in step.told:
            written.setdefault(step.told["file"], []).append(step.told["holds"])
    done = 0
    for number, point in enumerate(points):
        for step in traced.steps[done:point]:
            disk.do(step)
            if step.kind == "ack":
                _tell(told, step.told)
        done = point
        place = work / str(number)
        write_disk(place, traced.top, disk.after_cut(rng))
        _look(losses, place, traced.top, told, written, f"seed {seed}, cut {number} at step {point}")
        shutil.rmtree(place)
    return losses


def _tell(told: dict[str, Any], news: Mapping[str, Any]) -> None:
    if "rows" in news:
        told["rows"] = {name: max(count, told["rows"].get(name, 0)) for name, count in news["rows"].items()}
    elif "key" in news:
        told["states"].setdefault(news["session"], set()).add(news["key"])
    elif "file" in news:
        told["files"][news["file"]] = news["holds"]
    else:
        told["branches"].append(news["branch"])


def write_disk(place: Path, top: Path, contents: Mapping[str, bytes | None]) -> None:
    """Create at `place` what a disk has below `top`."""
    place.mkdir(parents=True)
    for path, content in sorted(contents.items()):
        target = place / Path(path).relative_to(top)
        if content is None:
            target.mkdir(exist_ok=True)
        elif not path.endswith("-shm"):  # SQLite makes it anew after a cut
            target.write_bytes(content)


def _look(
    losses: Losses,
    place: Path,
    top: Path,
    told: Mapping[str, Any],
    written: Mapping[str, list[str]],
    where: str,
) -> None:
    workspace = Workspace(repo=place)
    losses.cuts += 1
    promised: Mapping[str, int] = told["rows"]
    losses.promised += sum(promised.values())
    faults, missing = _record(workspace.raw, promised)
    losses.found("rows", missing, where)
    losses.found("damaged", bool(faults), f"{where}: {faults[:3]}")
    broken = [fault for path in _others(workspace) for fault in _database(path)]
    losses.found("others", bool(broken), f"{where}: {broken[:3]}")
    losses.kept += sum(map(len, told["states"].values()))
    lost = sum(forgotten(workspace, Path(path), keys) for path, keys in told["states"].items())
    losses.found("keys", lost, where)
    odd = [
        path
        for path in written
        if not _is_right(place / Path(path).relative_to(top), told["files"].get(path), written[path])
    ]
    losses.found("files", bool(odd), f"{where}: {odd}")
    gone = [branch for branch in told["branches"] if not _stands(place, branch)]
    losses.found("branches", bool(gone), f"{where}: {gone}")


def _record(raw: Path, promised: Mapping[str, int]) -> tuple[tuple[str, ...], int]:
    """What is wrong with the record, and how many rows it lacks."""
    if not raw.exists():
        return (), sum(promised.values())
    try:
        with contextlib.closing(connect_file("raw", raw)) as conn:
            faults = record_faults(conn)
            counts = {name: conn.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in promised}
    except (CraError, sqlite3.Error) as error:
        return (str(error),), sum(promised.values())
    return faults, sum(max(0, count - counts[name]) for name, count in promised.items())


def forgotten(workspace: Workspace, session: Path, keys: set[str]) -> int:
    """How many of the keys are neither in the session's file nor in the record's archive of it."""
    path = workspace.sessions / session.name
    try:
        if path.exists():
            with contextlib.closing(connect_file("session", path)) as conn:
                return len(keys - {row[0] for row in conn.execute("SELECT key FROM kv")})
        task = session.stem.removeprefix("session_")
        with contextlib.closing(connect_file("raw", workspace.raw)) as conn:
            archive = get_archive(conn, task)
        return len(keys if archive is None else keys - archived_states(archive.session_blob).keys())
    except (CraError, sqlite3.Error):  # a page that the cut took is met only where it is read
        return len(keys)


def _others(workspace: Workspace) -> tuple[Path, ...]:
    return (
        *sorted(workspace.sessions.glob("session_*.sqlite")),
        *sorted(workspace.folder.glob("curated.sqlite")),
    )


def _database(path: Path) -> tuple[str, ...]:
    """What is wrong with a database that can be made again, or whose task goes on."""
    try:
        with contextlib.closing(
            connect_file("curated" if "curated" in path.name else "session", path)
        ) as conn:
            return tuple(row[0] for row in conn.execute("PRAGMA quick_check") if row[0] != "ok")
    except (CraError, sqlite3.Error) as error:
        return (f"{path.name}: {error}",)


def _is_right(path: Path, acknowledged: str | None, written: list[str]) -> bool:
    """Whether the file holds a whole version, and none older than the one acknowledged last."""
    if not path.exists():
        return acknowledged is None
    oldest = 0 if acknowledged is None else written.index(acknowledged)
    return hashlib.sha256(path.read_bytes()).hexdigest() in written[oldest:]


def _stands(place: Path, branch: str) -> bool:
    name, commit = branch.split(" ")
    found = subprocess.run(
        ("git", "-C", str(place), "rev-list", "--objects", name), capture_output=True, text=True, check=False
    )
    return found.returncode == 0 and found.stdout.startswith(commit)
