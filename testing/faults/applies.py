"""`cra apply` and `--undo` under `kill -9`: each file is new or as before, and the next command brings all of them.

The change has every kind: contents, modes, links, new and emptied folders, a
name of 255 bytes. It is applied and undone in turn; after each kill, the next `apply` and `--undo` must go through.
"""

import os
import random
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from clean_room_agent.app.clock import utc_now
from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.cli import apply, runs  # noqa: F401 - loaded before the forks
from clean_room_agent.db.raw import runs as rows
from clean_room_agent.db.raw.record import Record
from clean_room_agent.git.commits import EXECUTABLE, FILE, LINK, FileChange, commit_files
from clean_room_agent.git.refs import write_ref
from clean_room_agent.git.repository import open_repository
from clean_room_agent.workspace import Workspace
from testing import repositories
from testing.faults.figures import Effort, Figure
from testing.faults.killing import Points, always, announce, run_killed
from testing.runs.solving import Project, make_project

SEED = 20261127
KILLS: dict[Effort, int] = {"full": 0, "short": 8}
"""Journal points of each command, spread over it; 0: all of them."""
MOMENTS: dict[Effort, int] = {"full": 100, "short": 2}
TASK = "5d1c8a52-7c7e-4a5c-9a53-0f2f0a6f0d11"
CALLS = ("open", "write", "rename", "replace", "unlink", "link", "symlink", "mkdir", "rmdir", "fsync")
LONG = "n" * 252 + ".py"
BASE: dict[str, str | bytes] = {
    "plain.py": "1\n2\n3\n",
    "private.txt": "secret\n",
    "tool.sh": "#!/bin/sh\n",
    "gone.py": "gone\n",
    "pkg/inner/only.py": "only\n",
    "bin.dat": b"\0\1" * 50_000,
    LONG: "long\n",
    "Readme": "read\n",
    "untouched.py": "u\n",
}
CHANGES: dict[str, FileChange | None] = {
    "plain.py": FileChange(data=b"1\ntwo\n3\n", mode=FILE),
    "private.txt": FileChange(data=b"changed\n", mode=FILE),
    "tool.sh": FileChange(data=b"#!/bin/sh\n", mode=EXECUTABLE),
    "gone.py": None,
    "pkg/inner/only.py": None,
    "bin.dat": FileChange(data=b"\0\2" * 60_000, mode=FILE),
    LONG: FileChange(data=b"longer\n", mode=FILE),
    "Readme": None,
    "README": FileChange(data=b"read\n", mode=FILE),
    "new/deep/file.py": FileChange(data=b"new\n", mode=FILE),
}
LINKS = {
    "link": FileChange(data=b"untouched.py", mode=LINK),
    "link_then_file": FileChange(data=b"a file\n", mode=FILE),
}
PRIVATE = 0o600

Tree = Mapping[str, tuple[int, bytes]]
"""Mode and content by path, of files and links."""


class Losses(Struct, kw_only=True):
    """What came of the tries."""

    tried: int = 0
    torn: int = 0
    """Tries after which a file was neither old nor new, or missing."""
    stuck: int = 0
    """Tries after which the next apply or undo did not go through."""
    first: dict[str, str] = field(default_factory=dict)

    def found(self, kind: str, wrong: bool, words: str) -> None:
        """One more of a kind, if `wrong`."""
        if wrong:
            setattr(self, kind, getattr(self, kind) + 1)
            self.first.setdefault(kind, words)


def run(effort: Effort, work: Path) -> tuple[Figure, ...]:
    """What kills left of the user's files."""
    killed = kill_all(work / "kills", KILLS[effort], MOMENTS[effort])
    for kind, words in killed.first.items():
        print(f"applies: {kind}: {words}", file=sys.stderr)
    return (
        _figure(
            "applies and undos killed: a file neither old nor new right after", killed.tried, killed.torn
        ),
        _figure("the same: the next apply or undo did not go through", killed.tried, killed.stuck),
    )


def _figure(name: str, tried: int, found: int) -> Figure:
    return Figure(name=name, tried=tried, found=found, target="0", met=found == 0 and tried > 0)


def make_applied(folder: Path) -> Project:
    """A project with a run whose result changes everything above; it is not applied."""
    project = make_project(folder, BASE)
    top = project.top
    (top / "private.txt").chmod(PRIVATE)
    (top / "link").symlink_to("plain.py")
    (top / "link_then_file").symlink_to("plain.py")
    repositories.git(top, "add", "-A")
    repositories.git(top, "commit", "-q", "-m", "Links")
    repo = open_repository(top)
    result = commit_files(repo, repo.head, CHANGES | LINKS, "Change")
    write_ref(repo, f"refs/cra/{TASK}/head", result, repo.zero)
    workspace = Workspace(repo=top)
    workspace.create()
    with Record.open(top, clock=utc_now) as record:
        row = rows.OrchestratorRunRow(
            task_id=TASK,
            repo_path=str(top),
            task_description="change everything",
            timestamp=record.now(),
            base_commit=repo.head,
        )
        number = record.write(rows.append_orchestrator_run, row)
        record.write(rows.set_snapshot, number, commit=repo.head, snapshot="{}")
        outcome = rows.RunOutcome(status=RunStatus.COMPLETE, completed_at=record.now(), result_commit=result)
        record.write(rows.set_outcome, number, outcome)
    return project


def tree_of(top: Path) -> Tree:
    """The user's files and links."""
    found = {}
    for path in top.rglob("*"):
        name = path.relative_to(top)
        if name.parts[0] in {".git", ".clean_room"}:
            continue
        about = path.lstat()
        if stat.S_ISLNK(about.st_mode):
            found[str(name)] = (0, os.fsencode(path.readlink()))
        elif stat.S_ISREG(about.st_mode):
            found[str(name)] = (stat.S_IMODE(about.st_mode), path.read_bytes())
    return found


def left_of(top: Path) -> list[str]:
    """What an update must not leave."""
    return [str(path.relative_to(top)) for path in top.rglob(".cra-*")]


class Bench:
    """A project, and its tree without and with the change."""

    def __init__(self, project: Project, losses: Losses) -> None:
        self.project = project
        self._losses = losses
        before = tree_of(project.top)
        self._is_applied = False
        self.turn()
        self.trees = (before, tree_of(project.top))
        self.turn()

    @property
    def next(self) -> tuple[str, ...]:
        """The arguments that apply or undo the change, whichever is not done."""
        return ("apply", "--undo", TASK) if self._is_applied else ("apply", TASK)

    def turn(self) -> None:
        """Apply or undo it, undisturbed."""
        ended = self._cra(*self.next)
        if ended[0]:
            raise SystemExit(f"{self.next}: {ended[2]}")
        self._is_applied = not self._is_applied

    def _cra(self, *args: str) -> tuple[int, str, str]:
        return self.project.run_here(*args)

    def look_torn(self, where: str) -> None:
        """Whether each file is as before or as after, right now."""
        old, new = self.trees
        there = {path: what for path, what in tree_of(self.project.top).items() if "/.cra-" not in f"/{path}"}
        wrong = sorted(
            path for path in {*old, *new, *there} if there.get(path) not in (old.get(path), new.get(path))
        )
        self._losses.found("torn", bool(wrong), f"{where}: {[path[:40] for path in wrong]}")

    def go_on(self, where: str) -> None:
        """Apply and undo: both must go through."""
        for args, tree in ((("apply", TASK), self.trees[1]), (("apply", "--undo", TASK), self.trees[0])):
            code, _, err = self._cra(*args)
            right = code == 0 and tree_of(self.project.top) == tree and not left_of(self.project.top)
            self._losses.found("stuck", not right, f"{where}: {args}: {code} {err[-600:]}")
        self._is_applied = False


def watch(points: Points) -> None:
    """Every call that changes something on the disk is a journal point."""
    for name in CALLS:
        announce(os, name, points, when=_creates if name == "open" else always)


def _creates(_path: object, flags: int, *_: object, **__: object) -> bool:
    return bool(flags & os.O_CREAT)


def kill_all(work: Path, points: int, moments: int) -> Losses:
    """Kills before journal points of apply and undo, and at random moments."""
    losses = Losses()
    bench = Bench(make_applied(work), losses)
    rng = random.Random(SEED)
    turns: list[tuple[bool, int, float | None]] = []
    for undo in (False, True):
        if undo:
            bench.turn()
        count = run_killed(bench.project, bench.next, watch=watch).points
        bench.go_on("counted")
        chosen = points or count
        turns += [(undo, 1 + (2 * n + 1) * count // (2 * chosen), None) for n in range(chosen)]
    turns += [(n % 2 == 1, 0, rng.uniform(0.0, 0.3)) for n in range(moments)]
    for undo, point, after in turns:
        if undo:
            bench.turn()
        where = f"{'undo' if undo else 'apply'}, point {point}, after {after}"
        ended = run_killed(bench.project, bench.next, point=point, after=after, watch=watch)
        if ended.code != -9:
            bench.go_on(where)
            continue
        losses.tried += 1
        bench.look_torn(where)
        bench.go_on(where)
    return losses
