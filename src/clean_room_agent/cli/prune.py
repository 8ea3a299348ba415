"""`cra prune`: show what uses space in `.clean_room`, git, the cache and the temporary folder; delete it with `--yes`.

If it is killed at any moment, the record has each run completely, or not at all.
"""

import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
from msgspec import Struct
from rich.console import RenderableType
from rich.text import Text

from clean_room_agent import safe_open
from clean_room_agent.app import wiring
from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.leftovers import as_it_stands, reap, task_lock
from clean_room_agent.app.settings import Overrides, load_settings
from clean_room_agent.artifacts.names import counted, first_line, short_id
from clean_room_agent.artifacts.outcomes import EventKind
from clean_room_agent.cli import options, output
from clean_room_agent.cli.safe_console import answers_console, sanitized
from clean_room_agent.db.connection import get_connection, remove_database
from clean_room_agent.db.raw.pruning import compact_record, delete_tasks, file_bytes, record_bytes
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.runs import EventRow, RunOverview, append_event, list_overviews
from clean_room_agent.db.rows import Connection, moment
from clean_room_agent.errors import GitError, RepositoryError, UsageError
from clean_room_agent.folders import FRESH, abandoned_folders, remove_abandoned, remove_tree
from clean_room_agent.git.refs import (
    branch_tip,
    delete_branch,
    delete_ref,
    is_merged,
    list_refs,
    using_worktree,
)
from clean_room_agent.git.repository import Repository, open_repository
from clean_room_agent.json_values import to_shown
from clean_room_agent.report.run_list import COLOURS, age, plain_table, size_text
from clean_room_agent.workspace import Workspace, is_held

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
ALL_RUNS = 1_000_000_000
MAX_LINK_BYTES = 8192
SHOWN_RUNS = 20
AGE = re.compile(r"([0-9]{1,5})([hdw])\Z")
UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


class PruningChoice(Struct, frozen=True, kw_only=True):
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

    def is_old(self, when: datetime) -> bool:
        """Whether it is as old as requested."""
        return self.older_than is None or datetime.now(UTC) - when >= self.older_than


class Piece(Struct, frozen=True, kw_only=True):
    """One thing that may be deleted."""

    kind: str
    name: str
    """A path or a ref; the task's id for what is in the record."""
    size: int = 0
    """Bytes; 0 for a ref, as what it frees depends on the other refs."""
    tip: str = ""
    """The commit of a branch."""


class PrunedRun(Struct, frozen=True, kw_only=True):
    """A run of which something is deleted."""

    of: RunOverview
    status: str
    """As `--status` names it."""
    pieces: tuple[Piece, ...]
    warning: str = ""

    @property
    def size(self) -> int:
        """Bytes, without those in git."""
        return sum(piece.size for piece in self.pieces)


class PruningPlan(Struct, frozen=True, kw_only=True):
    """Everything that would be deleted."""

    runs: tuple[PrunedRun, ...]
    others: tuple[Piece, ...]
    takes: Mapping[str, int]
    """Bytes of all that there is of a kind; what git keeps is not counted."""
    notes: tuple[str, ...]

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Everything that is deleted, in one list."""
        return (*(piece for run in self.runs for piece in run.pieces), *self.others)

    @property
    def size(self) -> int:
        """Bytes of everything that is deleted."""
        return sum(piece.size for piece in self.pieces)


class Site(Struct, frozen=True, kw_only=True):
    """The places where things are stored."""

    workspace: Workspace
    repo: Repository
    worktrees: Path
    """The folder of this repository's worktrees."""
    cache: Path
    """The folder with the folders of worktrees, one per repository."""

    def leftovers(self, kind: str) -> tuple[Path, ...]:
        """Files and folders that belong to no recorded run."""
        if kind == "worktrees":
            return (*_dead_worktrees(self), *_orphaned_worktrees(self))
        if kind == "reports":
            return tuple(sorted((self.workspace.folder / "reports").glob("*.html")))
        return abandoned_folders()


def plan_pruning(site: Site, choice: PruningChoice) -> PruningPlan:
    """What the selection would delete. Changes nothing."""
    notes: list[str] = []
    runs: tuple[PrunedRun, ...] = ()
    recorded: set[str] = set()
    if site.workspace.raw.exists():
        with contextlib.closing(get_connection("raw", repo_path=site.workspace.repo, read_only=True)) as conn:
            runs = tuple(_runs(site, conn, choice, notes))
            recorded = {entry.task_id for entry in list_overviews(conn, limit=ALL_RUNS)}
    others = []
    if "refs" in choice.kinds and not choice.statuses and choice.older_than is None:
        # Of runs whose record is gone, which have neither a status nor an age.
        refs = list_refs(site.repo, "refs/cra/")
        others += [Piece(kind="refs", name=ref) for ref in refs if ref.split("/")[2] not in recorded]
    for kind in choice.of_kinds:
        for path in site.leftovers(kind) if kind not in OF_RUNS else ():
            with contextlib.suppress(FileNotFoundError):
                if choice.is_old(datetime.fromtimestamp(path.lstat().st_mtime, UTC)):
                    others.append(Piece(kind=kind, name=str(path), size=_size_of(path)))
    return PruningPlan(runs=runs, others=tuple(others), takes=_sizes(site), notes=tuple(notes))


def _runs(site: Site, conn: Connection, choice: PruningChoice, notes: list[str]) -> Iterator[PrunedRun]:
    running = waiting = 0
    for recorded in list_overviews(conn, limit=ALL_RUNS):
        entry = as_it_stands(site.workspace, recorded)
        if entry.command in TRAINING or not choice.is_old(moment(entry.timestamp)):
            continue
        if is_held(site.workspace.task_lock(entry.task_id)):
            running += 1
            continue
        status = DISCARDED if entry.discarded and entry.command != "replay" else entry.status.value
        if not {status, entry.status.value} & {*(choice.statuses or (*ENDED, DISCARDED))}:
            waiting += entry.status.value not in ENDED and not choice.statuses
            continue
        if pieces := tuple(_pieces(site, conn, entry, choice)):
            lost = LOSING & {piece.kind for piece in pieces}
            resumable = entry.command == "solve" and status not in {"complete", "unproven", DISCARDED}
            warning = "cannot be resumed afterwards" if lost and resumable else ""
            yield PrunedRun(of=entry, status=status, pieces=pieces, warning=warning)
    if running:
        notes.append(f"{counted(running, 'run is', 'runs are')} in progress: kept")
    if waiting and LOSING.intersection(choice.of_kinds):
        notes.append(
            f"{counted(waiting, 'run')} can be resumed: kept; --status partial (interrupted, needs_human) selects them"
        )


def _pieces(site: Site, conn: Connection, entry: RunOverview, choice: PruningChoice) -> Iterator[Piece]:
    task_id, workspace = entry.task_id, site.workspace
    for kind in choice.of_runs:
        match kind:
            case "record":
                yield Piece(kind=kind, name=task_id, size=record_bytes(conn, task_id))
            case "sessions" if (path := workspace.session(task_id)).exists():
                yield Piece(kind=kind, name=str(path), size=file_bytes(path))
            case "index-copies" if (path := workspace.run_copy(task_id)).exists():
                yield Piece(kind=kind, name=str(path), size=file_bytes(path))
            case "refs":
                for ref in list_refs(site.repo, f"refs/cra/{task_id}/"):
                    yield Piece(kind=kind, name=ref)
            case "branches" if entry.branch:
                branch, tip = entry.branch, entry.result_commit
                # Without loss: it is where the run left it, other branches contain it, and no worktree uses it.
                unmoved = tip != "" and branch_tip(site.repo, branch) == tip
                if unmoved and is_merged(site.repo, tip) and using_worktree(site.repo, branch) is None:
                    yield Piece(kind=kind, name=f"refs/heads/{branch}", tip=tip)


def _dead_worktrees(site: Site) -> Iterator[Path]:
    """This repository's worktrees that no run uses, which `reap` removes."""
    locks = site.workspace.sessions.glob("task_*.lock")
    running = {short_id(lock.stem.removeprefix("task_")) for lock in locks if is_held(lock)}
    if site.worktrees.is_dir():
        for path in sorted(site.worktrees.iterdir()):
            if path.is_dir() and path.name.partition("-")[0] not in {*running, "check"}:
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
        if links and idle and not any(map(_repository_exists, links)):
            yield folder


def _repository_exists(link: Path) -> bool:
    """Whether the repository that the worktree's `.git` file names exists; assumed if the file cannot be read."""
    try:
        content = safe_open.read_bytes(link.parent, link.name, max_bytes=MAX_LINK_BYTES)
    except OSError:
        return True
    return Path(os.fsdecode(content).removeprefix("gitdir: ").rstrip("\n")).parent.parent.exists()


def _sizes(site: Site) -> dict[str, int]:
    sessions = site.workspace.sessions
    return {
        "record": file_bytes(site.workspace.raw),
        "sessions": sum(map(file_bytes, sessions.glob("session_*.sqlite"))),
        "index-copies": sum(map(file_bytes, sessions.glob("curated_*.sqlite"))),
        **{kind: sum(map(_size_of, site.leftovers(kind))) for kind in KINDS if kind not in OF_RUNS},
    }


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


def carry_out(site: Site, plan: PruningPlan) -> tuple[str, ...]:
    """Delete what the plan names, except for what is in use by now; returns notes for the user."""
    notes: list[str] = []
    if site.workspace.raw.exists():
        notes += reap(site.workspace, site.repo, site.worktrees)
        with Record.open(site.workspace.repo, clock=utc_now) as record:
            for run in plan.runs:
                task_id = run.of.task_id
                try:
                    with task_lock(site.workspace, task_id, patience=0):
                        notes += _prune_run(site, record, run)
                except UsageError as error:
                    notes.append(f"run {short_id(task_id)} was left alone: {error.message}")
    for piece in plan.others:
        notes += _remove(site, piece)
    if any(piece.kind == "record" for piece in plan.pieces) and not compact_record(site.workspace):
        notes.append(
            "the record is open in another process: its file gets smaller with the next `cra prune --yes`"
        )
    return tuple(notes)


def _prune_run(site: Site, record: Record, run: PrunedRun) -> list[str]:
    """Returns what is in use by now and was kept.

    The run is marked as pruned in the record before anything of it is deleted, and its rows are deleted last, at once:
    if this is interrupted, the next start continues.
    """
    task_id, kinds = run.of.task_id, sorted({piece.kind for piece in run.pieces})
    if LOSING & {*kinds}:
        mark = EventRow(
            task_id=task_id, kind=EventKind.PRUNED, detail=json.dumps(kinds), timestamp=record.now()
        )
        record.write(append_event, mark)
    kept = [note for piece in run.pieces for note in _remove(site, piece)]
    if "record" in kinds:
        record.write(delete_tasks, (task_id,))
    return kept


def _remove(site: Site, piece: Piece) -> list[str]:
    """Delete one thing, except for rows of the record; returns why that was not possible, if it was not."""
    path = Path(piece.name)
    try:
        match piece.kind:
            case "branches":
                delete_branch(site.repo, piece.name.removeprefix("refs/heads/"), piece.tip)
            case "refs":
                delete_ref(site.repo, piece.name)
            case "sessions" | "index-copies":
                remove_database(path)
            case "temporary":
                remove_abandoned(path)
            case "worktrees" if (path / ".git").is_file() and _repository_exists(path / ".git"):
                pass  # only `reap` removes it, together with git's metadata
            case "worktrees" | "reports":
                remove_tree(path)
    except OSError as error:
        if piece.kind in OF_RUNS:
            raise  # the rows of a run are deleted only when nothing else of it is left
        return [f"{path} cannot be removed: {error.strerror or error}"]
    except (GitError, RepositoryError) as error:
        if piece.kind != "branches":
            raise
        return [f"kept: {error.message}"]
    return []


def as_object(plan: PruningPlan, notes: tuple[str, ...], *, done: bool) -> dict[str, Any]:
    """The plan as `--json` answers it."""
    return {
        "done": done,
        "bytes": plan.size,
        "kinds": [
            {
                "kind": kind,
                "takes": plan.takes.get(kind),
                "goes": sum(piece.size for piece in found),
                "count": len(found),
            }
            for kind, found in _by_kind(plan)
        ],
        "runs": [
            {
                "task_id": run.of.task_id,
                "status": run.status,
                "bytes": run.size,
                "kinds": sorted({piece.kind for piece in run.pieces}),
                "warning": run.warning,
            }
            for run in plan.runs
        ],
        "others": to_shown(plan.others),
        "notes": notes,
    }


def _by_kind(plan: PruningPlan) -> list[tuple[str, list[Piece]]]:
    return [(kind, [piece for piece in plan.pieces if piece.kind == kind]) for kind in KINDS]


def render(plan: PruningPlan, *, done: bool) -> list[RenderableType]:
    """What uses space, by kind and by run."""
    goes = "deleted" if done else "deletable"
    table = plain_table("what", "size", goes, "", right=("size", goes), folded=("",))
    for kind, found in _by_kind(plan):
        takes = size_text(plan.takes[kind]) if kind in plan.takes else ""
        freed = size_text(sum(piece.size for piece in found)) if takes else str(len(found))
        told = Text(freed if found else "-", style="bold" if found else "dim")
        table.add_row(kind, takes, told, Text(KINDS[kind], style="dim"))
    parts: list[RenderableType] = [table]
    if plan.runs:
        columns = ("run", "age", "status", "size", "task")
        runs = plain_table(*columns, right=("age", "size"), folded=("task",))
        for run in plan.runs[:SHOWN_RUNS]:
            task = Text(first_line(run.of.task_description) or run.of.command)
            if run.warning:
                task.append(f"\n{run.warning}", style="yellow")
            status = Text(run.status.replace("_", " "), style=COLOURS.get(run.status, "cyan"))
            started = age(run.of.timestamp, utc_now())
            runs.add_row(short_id(run.of.task_id), started, status, size_text(run.size), task)
        parts += [Text(""), runs]
        if (more := len(plan.runs) - SHOWN_RUNS) > 0:
            parts.append(Text(f"and {counted(more, 'more run')} (--json lists all)", style="dim"))
    return [*parts, Text("")]


def verdict(plan: PruningPlan, *, done: bool) -> str:
    """What was deleted, or would be."""
    if not plan.pieces:
        return "nothing to delete; select more with --older-than, --status and --kind"
    if done:
        return f"{size_text(plan.size)} deleted"
    return f"nothing was deleted; {size_text(plan.size)} would be deleted with --yes"


HELP = f"""Show what uses disk space, and with --yes delete what can go. Nothing is deleted without --yes.

By default that is only what nobody needs: worktrees, copies and temporary folders that dead processes left. Select more by
age, status or kind; conditions are combined. A run in progress is never touched, and one that can be resumed only if
--status names it. The branch of a pruned run stays unless it is merged.

\b
cra prune                              what uses space
cra prune --older-than 30d --yes       everything of older runs that have ended, reports too
cra prune --status failed --yes        everything of failed runs
cra prune --kind refs --older-than 2w  what would be deleted in git

\b
Kinds:
{chr(10).join(f"  {kind:<13} {text}" for kind, text in KINDS.items())}

Exit codes: 0 done or shown, 1 the record or git refused, 2 usage.
"""


def _age(_context: click.Context, _parameter: click.Parameter, value: str | None) -> timedelta | None:
    if value is None:
        return None
    match = AGE.match(value)
    if match is None:
        raise click.BadParameter("write a number and h, d or w, such as 12h, 30d or 2w")
    return int(match[1]) * UNITS[match[2]]


@click.command(help=HELP)
@click.option(
    "--older-than", metavar="AGE", callback=_age, help="Started longer ago than this: 12h, 30d, 2w."
)
@click.option(
    "--status",
    "statuses",
    type=click.Choice(STATUSES),
    multiple=True,
    help=f"Only runs with this status, or {DISCARDED} ones. Repeatable. By default complete, failed and {DISCARDED}.",
)
@click.option(
    "--kind", "kinds", type=click.Choice(tuple(KINDS)), multiple=True, help="Only this kind. Repeatable."
)
@click.option("-y", "--yes", is_flag=True, help="Delete it.")
@options.repo_option
@options.json_option
def command(
    older_than: timedelta | None,
    statuses: tuple[str, ...],
    kinds: tuple[str, ...],
    yes: bool,
    repo: Path,
    as_json: bool,
) -> int:
    """The command."""
    workspace = wiring.workspace_of(repo)
    settings = load_settings(workspace.config, Overrides(), optional=True)
    site = Site(
        workspace=workspace,
        repo=open_repository(workspace.repo),
        worktrees=wiring.worktrees_folder(workspace, settings),
        cache=wiring.cache_folder() / "worktrees",
    )
    plan = plan_pruning(site, PruningChoice(older_than=older_than, statuses=statuses, kinds=kinds))
    notes = (*plan.notes, *(carry_out(site, plan) if yes else ()))
    if as_json:
        output.answer_json(as_object(plan, notes, done=yes))
    else:
        answers_console().print(*render(sanitized(plan), done=yes), sep="\n", highlight=False)
        for note in notes:
            output.answer(note)
        output.answer(verdict(plan, done=yes))
    return 0
