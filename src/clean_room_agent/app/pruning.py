"""Measures what uses space in `.clean_room`, git, the cache and the temporary folder, plans what to
delete, and deletes it; if it is killed at any moment, each run is either complete or gone.
"""

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec import Struct

from clean_room_agent import safe_open
from clean_room_agent.app import wiring
from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.leftovers import reap, task_lock
from clean_room_agent.app.listed_runs import as_it_stands
from clean_room_agent.app.settings import Overrides, load_settings
from clean_room_agent.artifacts.names import counted, short_id, task_of
from clean_room_agent.artifacts.outcomes import EventKind
from clean_room_agent.db.connection import get_connection, remove_database
from clean_room_agent.db.raw.pruning import compact_record, delete_tasks, file_bytes, record_bytes
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.runs import EventRow, RunOverview, append_event, list_overviews
from clean_room_agent.db.rows import Connection, moment
from clean_room_agent.errors import GitError, RepositoryError, UsageError
from clean_room_agent.folders import FRESH, abandoned_folders, remove_abandoned, remove_tree
from clean_room_agent.git.refs import (
    branch_tip,
    bytes_kept_by,
    delete_branch,
    delete_ref,
    is_merged,
    list_refs,
    using_worktree,
)
from clean_room_agent.git.repository import Repository, open_repository
from clean_room_agent.workspace import Workspace, is_held

MAX_LINK_BYTES = 8192
KINDS = {
    "record": "all that is known about runs: prompts, answers, tests",
    "sessions": "what unfinished runs need to continue",
    "index-copies": "made again if a run continues",
    "refs": "snapshots and attempts; freed by a later git gc",
    "branches": "cra/<id> that are merged",
    "worktrees": "left by dead runs",
    "reports": "pages of `cra report`",
    "temporary": "folders left by killed processes",
}
OF_RUNS = ("record", "sessions", "index-copies", "refs", "branches")
HARMLESS = ("index-copies", "worktrees", "temporary")
"""What is deleted by default, since nothing is lost with it."""
LOSING = frozenset({"record", "sessions", "refs"})
"""A run that lost one of these can neither be resumed nor be shown completely."""
ENDED = ("complete", "unproven", "failed")
DISCARDED = "discarded"
STATUSES = (*ENDED, "partial", "interrupted", "needs_human", DISCARDED)
TRAINING = frozenset({"train_plan", "curate_data"})
"""Adapters are based on these; they are not runs."""
EVERY = 1_000_000_000


class Choice(Struct, frozen=True, kw_only=True):
    """What the user selected; by default, only what nobody needs."""

    older_than: timedelta | None = None
    statuses: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()

    @property
    def of_kinds(self) -> tuple[str, ...]:
        """The kinds that may be deleted."""
        if self.kinds:
            return self.kinds
        if self.statuses:
            return OF_RUNS
        return HARMLESS if self.older_than is None else tuple(KINDS)

    @property
    def of_runs(self) -> tuple[str, ...]:
        """The kinds that may be deleted of a run: without its record, the owner of the rest would be unknown."""
        chosen = {*self.of_kinds, *(OF_RUNS[:-1] if "record" in self.of_kinds else ())}
        return tuple(kind for kind in OF_RUNS if kind in chosen)

    def is_old(self, when: datetime, now: datetime) -> bool:
        """Whether it is as old as requested."""
        return self.older_than is None or now - when >= self.older_than


class Piece(Struct, frozen=True, kw_only=True):
    """One thing that may be deleted."""

    kind: str
    name: str
    """A path or a ref; the task's id for what is in the record."""
    size: int = 0
    """Bytes; 0 for a ref, since what it frees depends on the other refs."""
    tip: str = ""
    """The commit of a branch."""


class PrunedRun(Struct, frozen=True, kw_only=True):
    """A run of which something is deleted."""

    task_id: str
    command: str
    status: str
    timestamp: str
    task_description: str
    pieces: tuple[Piece, ...]
    warning: str = ""

    @property
    def size(self) -> int:
        """Bytes, without those in git."""
        return sum(piece.size for piece in self.pieces)


class KindSize(Struct, frozen=True, kw_only=True):
    """The bytes that a kind takes, and how many of them are deleted."""

    kind: str
    takes: int
    goes: int
    count: int
    """The number of things that are deleted."""


class Plan(Struct, frozen=True, kw_only=True):
    """Everything that would be deleted."""

    runs: tuple[PrunedRun, ...]
    others: tuple[Piece, ...]
    sizes: tuple[KindSize, ...]
    notes: tuple[str, ...]

    @property
    def size(self) -> int:
        """Bytes of everything that is deleted."""
        return sum(each.goes for each in self.sizes)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Everything that is deleted, in one list."""
        return (*(piece for run in self.runs for piece in run.pieces), *self.others)


class Site(Struct, frozen=True, kw_only=True):
    """The places where things are stored."""

    workspace: Workspace
    repo: Repository
    worktrees: Path
    """The folder of this repository's worktrees."""
    cache: Path
    """The folder with the folders of worktrees, one per repository."""


def plan_pruning(site: Site, choice: Choice) -> Plan:
    """What the selection would delete. Changes nothing."""
    now = moment(utc_now())
    notes: list[str] = []
    runs: tuple[PrunedRun, ...] = ()
    known: set[str] = set()
    if site.workspace.raw.exists():
        with contextlib.closing(get_connection("raw", repo_path=site.workspace.repo, read_only=True)) as conn:
            found = [as_it_stands(site.workspace, each) for each in list_overviews(conn, limit=EVERY)]
            known = {task_of(each.listing.task_id) for each in found}
            runs = tuple(_runs(site, conn, found, choice, now, notes))
    others = tuple(_others(site, choice, now, known))
    return Plan(runs=runs, others=others, sizes=_sizes(site, runs, others), notes=tuple(notes))


def _runs(
    site: Site, conn: Connection, found: list[RunOverview], choice: Choice, now: datetime, notes: list[str]
) -> Iterator[PrunedRun]:
    wanted = choice.statuses or (*ENDED, DISCARDED)
    running = waiting = 0
    for entry in found:
        listing = entry.listing
        if listing.command in TRAINING or not choice.is_old(moment(listing.timestamp), now):
            continue
        if is_held(site.workspace.task_lock(listing.task_id)):
            running += 1
            continue
        status = DISCARDED if entry.discarded and listing.command != "replay" else listing.status.value
        if status not in wanted and listing.status.value not in wanted:
            waiting += listing.status.value not in ENDED and not choice.statuses
            continue
        pieces = tuple(_pieces(site, conn, entry, choice.of_runs))
        if pieces:
            lost = LOSING & {piece.kind for piece in pieces}
            goes_on = listing.command == "solve" and status not in {"complete", "unproven", DISCARDED}
            yield PrunedRun(
                task_id=listing.task_id,
                command=listing.command,
                status=status,
                timestamp=listing.timestamp,
                task_description=listing.task_description,
                pieces=pieces,
                warning="cannot be resumed afterwards" if lost and goes_on else "",
            )
    if running:
        notes.append(f"{counted(running, 'run is', 'runs are')} in progress: kept")
    if waiting and LOSING.intersection(choice.of_kinds):
        notes.append(
            f"{counted(waiting, 'run')} can be resumed: kept; --status partial (interrupted, needs_human) selects them"
        )


def _pieces(site: Site, conn: Connection, entry: RunOverview, kinds: Iterable[str]) -> Iterator[Piece]:
    task_id, workspace = entry.listing.task_id, site.workspace
    for kind in kinds:
        match kind:
            case "record":
                yield Piece(kind=kind, name=task_id, size=record_bytes(conn, task_id))
            case "sessions" if (path := workspace.session(task_id)).exists():
                yield Piece(kind=kind, name=str(path), size=file_bytes(path))
            case "index-copies" if (path := workspace.run_copy(task_id)).exists():
                yield Piece(kind=kind, name=str(path), size=file_bytes(path))
            case "refs":
                yield from (
                    Piece(kind=kind, name=ref) for ref in list_refs(site.repo, f"refs/cra/{task_id}/")
                )
            case "branches" if entry.run is not None and entry.run.branch:
                branch, tip = entry.run.branch, entry.run.result_commit
                if _may_go(site.repo, branch, tip):
                    yield Piece(kind=kind, name=f"refs/heads/{branch}", tip=tip)


def _may_go(repo: Repository, branch: str, tip: str) -> bool:
    """Whether the branch can be deleted without loss: it is where the run left it, other branches contain it, and no
    worktree uses it.
    """
    stands = tip != "" and branch_tip(repo, branch) == tip
    return stands and is_merged(repo, tip) and using_worktree(repo, branch) is None


def _others(site: Site, choice: Choice, now: datetime, known: set[str]) -> Iterator[Piece]:
    """Leftovers that belong to no recorded run."""
    for kind in choice.of_kinds:
        if kind in OF_RUNS:
            if kind == "refs" and "refs" in choice.kinds and not choice.statuses and not choice.older_than:
                for ref in list_refs(site.repo, "refs/cra/"):
                    if ref.split("/")[2] not in known:
                        yield Piece(kind=kind, name=ref)
            continue
        for path in _paths(site, kind):
            with contextlib.suppress(FileNotFoundError):
                when = datetime.fromtimestamp(path.lstat().st_mtime, UTC)
                if choice.is_old(when, now):
                    yield Piece(kind=kind, name=str(path), size=_size_of(path))


def _paths(site: Site, kind: str) -> tuple[Path, ...]:
    if kind == "worktrees":
        return (*_dead_worktrees(site), *_orphaned_worktrees(site))
    if kind == "reports":
        return tuple(sorted((site.workspace.folder / "reports").glob("*.html")))
    return abandoned_folders()


def _dead_worktrees(site: Site) -> Iterator[Path]:
    """This repository's worktrees that no run uses, which `reap` removes."""
    locks = site.workspace.sessions.glob("task_*.lock")
    running = {short_id(lock.stem.removeprefix("task_")) for lock in locks if is_held(lock)}
    if site.worktrees.is_dir():
        for path in sorted(site.worktrees.iterdir()):
            owner = path.name.partition("-")[0]
            if path.is_dir() and owner not in {*running, "check"}:
                yield path


def _orphaned_worktrees(site: Site) -> Iterator[Path]:
    """Folders of the cache that belong to repositories that no longer exist."""
    if not site.cache.is_dir():
        return
    for folder in sorted(site.cache.iterdir()):
        if folder == site.worktrees or folder.is_symlink() or not folder.is_dir():
            continue
        links = [path / ".git" for path in folder.iterdir() if (path / ".git").is_file()]
        idle = datetime.now(UTC).timestamp() - folder.stat().st_mtime > FRESH
        if links and idle and not any(map(repository_stands, links)):
            yield folder


def repository_stands(link: Path) -> bool:
    """Whether the repository that the worktree's `.git` file names exists."""
    try:
        told = (
            os.fsdecode(safe_open.read_bytes(link.parent, link.name, max_bytes=MAX_LINK_BYTES))
            .removeprefix("gitdir: ")
            .rstrip("\n")
        )
    except OSError:
        return True
    return Path(told).parent.parent.exists()


def _sizes(site: Site, runs: tuple[PrunedRun, ...], others: tuple[Piece, ...]) -> tuple[KindSize, ...]:
    going = (*(piece for run in runs for piece in run.pieces), *others)
    refs = list_refs(site.repo, "refs/cra/")
    gone = {piece.name for piece in going if piece.kind == "refs"}
    in_git = bytes_kept_by(site.repo, set(refs.values()))
    left = bytes_kept_by(site.repo, {commit for ref, commit in refs.items() if ref not in gone})
    sessions = site.workspace.sessions
    takes = {
        "record": file_bytes(site.workspace.raw),
        "sessions": sum(map(file_bytes, sessions.glob("session_*.sqlite"))),
        "index-copies": sum(map(file_bytes, sessions.glob("curated_*.sqlite"))),
        "refs": in_git,
        "branches": 0,
    }
    found = []
    for kind in KINDS:
        own = [piece for piece in going if piece.kind == kind]
        size = in_git - left if kind == "refs" else sum(piece.size for piece in own)
        paths = _paths(site, kind) if kind not in takes else ()
        total = takes[kind] if kind in takes else sum(map(_size_of, paths))
        found.append(KindSize(kind=kind, takes=total, goes=size, count=len(own)))
    return tuple(found)


def _size_of(path: Path) -> int:
    """Bytes of the file, or of all files below the folder; files that disappear meanwhile are not counted."""
    total = 0
    waiting = [path]
    while waiting:
        with contextlib.suppress(OSError):
            at = waiting.pop()
            if at.is_dir() and not at.is_symlink():
                waiting += at.iterdir()
            else:
                total += at.lstat().st_size
    return total


def site_of(workspace: Workspace) -> Site:
    """Where to look, as configured."""
    settings = load_settings(workspace.config, Overrides(), optional=True)
    return Site(
        workspace=workspace,
        repo=open_repository(workspace.repo),
        worktrees=wiring.worktrees_folder(workspace, settings),
        cache=wiring.cache_folder() / "worktrees",
    )


def carry_out(site: Site, plan: Plan) -> tuple[str, ...]:
    """Delete what the plan names, except for what is in use by now; returns notes for the user.

    A run is marked as pruned in the record before anything of it is deleted, and its rows are deleted last, at once. If
    this is interrupted, the record has each run completely or not at all, and the next start continues.
    """
    notes: list[str] = []
    if site.workspace.raw.exists():
        notes += reap(site.workspace, site.repo, site.worktrees)
        with Record.open(site.workspace.repo, clock=utc_now) as record:
            for run in plan.runs:
                try:
                    with task_lock(site.workspace, run.task_id, patience=0):
                        notes += _prune_run(site, record, run)
                except UsageError as error:
                    notes.append(f"run {short_id(run.task_id)} was left alone: {error.message}")
    for piece in plan.others:
        if piece.kind == "refs":
            delete_ref(site.repo, piece.name)
            continue
        notes += _remove(piece)
    if any(piece.kind == "record" for piece in plan.pieces) and not compact_record(site.workspace):
        notes.append(
            "the record is open in another process: its file gets smaller with the next `cra prune --yes`"
        )
    return tuple(notes)


def _prune_run(site: Site, record: Record, run: PrunedRun) -> list[str]:
    """Returns which branches are in use by now and were kept."""
    kept = []
    kinds = sorted({piece.kind for piece in run.pieces})
    if LOSING & {*kinds}:
        said = EventRow(
            task_id=run.task_id, kind=EventKind.PRUNED, detail=json.dumps(kinds), timestamp=record.now()
        )
        record.write(append_event, said)
    for piece in run.pieces:
        if piece.kind == "branches":
            try:
                delete_branch(site.repo, piece.name.removeprefix("refs/heads/"), piece.tip)
            except (GitError, RepositoryError) as error:
                kept.append(f"kept: {error.message}")
        elif piece.kind == "refs":
            delete_ref(site.repo, piece.name)
        elif piece.kind in {"sessions", "index-copies"}:
            remove_database(Path(piece.name))
    if "record" in kinds:
        record.write(delete_tasks, (run.task_id,))
    return kept


def _remove(piece: Piece) -> tuple[str, ...]:
    """Delete the file or folder; returns why that failed, or ""."""
    path = Path(piece.name)
    try:
        if piece.kind == "temporary":
            remove_abandoned(path)
        elif not (piece.kind == "worktrees" and _is_linked(path)):
            remove_tree(path)
    except OSError as error:
        return (f"{path} cannot be removed: {error.strerror or error}",)
    return ()


def _is_linked(path: Path) -> bool:
    """Whether it is a worktree of an existing repository, which only `reap` removes, together with git's metadata."""
    return (path / ".git").is_file() and repository_stands(path / ".git")
