"""`cra prune`: show what runs use in `.clean_room` and git, and what killed processes left; delete it with `--yes`.

If it is killed at any moment, the record has each run completely, or not at all.
"""

import contextlib
import os
import re
from collections.abc import Iterator
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
from clean_room_agent.app.leftovers import as_it_stands, delete_refs, reap, task_lock
from clean_room_agent.app.settings import Overrides, load_settings
from clean_room_agent.artifacts.names import counted, first_line, short_id
from clean_room_agent.artifacts.outcomes import EventKind
from clean_room_agent.cli import options, output
from clean_room_agent.cli.safe_console import answers_console, sanitized
from clean_room_agent.db.connection import read_record, remove_database
from clean_room_agent.db.raw.pruning import compact_record, delete_tasks, run_bytes
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.runs import EventRow, RunOverview, append_event, list_overviews
from clean_room_agent.db.rows import Connection, moment
from clean_room_agent.errors import GitError, RepositoryError, UsageError
from clean_room_agent.folders import FRESH, abandoned_folders, remove_abandoned, remove_tree
from clean_room_agent.git.refs import branch_tip, delete_branch, is_merged, using_worktree
from clean_room_agent.git.repository import Repository, open_repository
from clean_room_agent.report.run_list import COLOURS, age, plain_table, size_text
from clean_room_agent.workspace import Workspace, is_held

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


class PrunedRun(Struct, frozen=True, kw_only=True):
    """A run that is deleted, with all that there is of it."""

    of: RunOverview
    status: str
    """As `--status` names it."""
    size: int
    """Bytes, without those in git."""
    branch: str = ""
    """Its branch, if that goes without loss."""


class Leftover(Struct, frozen=True, kw_only=True):
    """A folder that a dead process left."""

    path: str
    size: int
    worktree: bool


class PruningPlan(Struct, frozen=True, kw_only=True):
    """Everything that would be deleted."""

    runs: tuple[PrunedRun, ...]
    leftovers: tuple[Leftover, ...]
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of everything that is deleted."""
        return sum(run.size for run in self.runs) + sum(each.size for each in self.leftovers)


class Site(Struct, frozen=True, kw_only=True):
    """The places where things are stored."""

    workspace: Workspace
    repo: Repository
    worktrees: Path
    """The folder of this repository's worktrees."""
    cache: Path
    """The folder with the folders of worktrees, one per repository."""


def plan_pruning(site: Site, older_than: timedelta | None, statuses: tuple[str, ...]) -> PruningPlan:
    """What the selection would delete: runs only if it selects some. Changes nothing."""
    notes: list[str] = []
    runs: tuple[PrunedRun, ...] = ()
    if site.workspace.raw.exists() and (older_than is not None or statuses):
        with read_record(site.workspace.repo) as conn:
            runs = tuple(_prunable_runs(site, conn, older_than or timedelta(), statuses, notes))
    worktrees = (*_dead_worktrees(site), *_orphaned_worktrees(site))
    found = [(path, True) for path in worktrees] + [(path, False) for path in abandoned_folders()]
    leftovers = tuple(
        Leftover(path=str(path), size=_size_of(path), worktree=worktree) for path, worktree in found
    )
    return PruningPlan(runs=runs, leftovers=leftovers, notes=tuple(notes))


def _prunable_runs(
    site: Site, conn: Connection, older_than: timedelta, statuses: tuple[str, ...], notes: list[str]
) -> Iterator[PrunedRun]:
    running = waiting = 0
    workspace = site.workspace
    for recorded in list_overviews(conn, limit=ALL_RUNS):
        entry = as_it_stands(workspace, recorded)
        task_id = entry.task_id
        if entry.command in TRAINING or datetime.now(UTC) - moment(entry.timestamp) < older_than:
            continue
        if is_held(workspace.task_lock(task_id)):
            running += 1
            continue
        status = DISCARDED if entry.discarded and entry.command != "replay" else entry.status.value
        if not {status, entry.status.value} & {*(statuses or (*ENDED, DISCARDED))}:
            waiting += entry.status.value not in ENDED and not statuses
            continue
        size = run_bytes(conn, workspace, task_id)
        yield PrunedRun(of=entry, status=status, size=size, branch=_branch_to_delete(site, entry))
    if running:
        notes.append(f"{counted(running, 'run is', 'runs are')} in progress: kept")
    if waiting:
        notes.append(
            f"{counted(waiting, 'run')} can be resumed: kept; --status partial (interrupted, needs_human) selects them"
        )


def _branch_to_delete(site: Site, entry: RunOverview) -> str:
    """The run's branch, if it is where the run left it, other branches contain it, and no worktree uses it; else ""."""
    branch, tip = entry.branch, entry.result_commit
    if not branch or not tip or branch_tip(site.repo, branch) != tip:
        return ""
    return branch if is_merged(site.repo, tip) and using_worktree(site.repo, branch) is None else ""


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
    for leftover in plan.leftovers:
        notes += _remove_leftover(leftover)
    if plan.runs and not compact_record(site.workspace):
        notes.append(
            "the record is open in another process: its file gets smaller with the next `cra prune --yes`"
        )
    return tuple(notes)


def _prune_run(site: Site, record: Record, run: PrunedRun) -> list[str]:
    """Returns what is in use by now and was kept.

    The run is marked as pruned in the record before anything of it is deleted, and its rows are deleted last, at once:
    if this is interrupted, the next start continues.
    """
    task_id = run.of.task_id
    detail = "all of it was to be deleted"
    mark = EventRow(task_id=task_id, kind=EventKind.PRUNED, detail=detail, timestamp=record.now())
    record.write(append_event, mark)
    kept = []
    if run.branch:
        try:
            delete_branch(site.repo, run.branch, run.of.result_commit)
        except (GitError, RepositoryError) as error:
            kept.append(f"kept: {error.message}")
    delete_refs(site.repo, task_id)
    remove_database(site.workspace.session(task_id))
    remove_database(site.workspace.run_copy(task_id))
    for page in (site.workspace.folder / "reports").glob(f"cra-*report-{short_id(task_id)}.*"):
        page.unlink()
    record.write(delete_tasks, (task_id,))
    return kept


def _remove_leftover(leftover: Leftover) -> list[str]:
    """Delete the folder; returns why that was not possible, if it was not."""
    path = Path(leftover.path)
    try:
        if not leftover.worktree:
            remove_abandoned(path)
        elif not ((path / ".git").is_file() and _repository_exists(path / ".git")):
            remove_tree(path)  # else only `reap` removes it, together with git's metadata
    except OSError as error:
        return [f"{path} cannot be removed: {error.strerror or error}"]
    return []


def as_object(plan: PruningPlan, notes: tuple[str, ...], *, done: bool) -> dict[str, Any]:
    """The plan as `--json` answers it."""
    return {
        "done": done,
        "bytes": plan.size,
        "runs": [
            {"task_id": run.of.task_id, "status": run.status, "bytes": run.size, "branch": run.branch}
            for run in plan.runs
        ],
        "leftovers": [{"path": each.path, "bytes": each.size} for each in plan.leftovers],
        "notes": notes,
    }


def render(plan: PruningPlan) -> list[RenderableType]:
    """The runs, then what dead processes left."""
    parts: list[RenderableType] = []
    if plan.runs:
        columns = ("run", "age", "status", "size", "task")
        runs = plain_table(*columns, right=("age", "size"), folded=("task",))
        for run in plan.runs[:SHOWN_RUNS]:
            status = Text(run.status.replace("_", " "), style=COLOURS.get(run.status, "cyan"))
            task = first_line(run.of.task_description) or run.of.command
            started = age(run.of.timestamp, utc_now())
            runs.add_row(short_id(run.of.task_id), started, status, size_text(run.size), Text(task))
        parts.append(runs)
        if (more := len(plan.runs) - SHOWN_RUNS) > 0:
            parts.append(Text(f"and {counted(more, 'more run')} (--json lists all)", style="dim"))
    return parts + [Text(f"{size_text(each.size):>9}  {each.path}") for each in plan.leftovers]


def verdict(plan: PruningPlan, *, done: bool) -> str:
    """What was deleted, or would be."""
    if not plan.runs and not plan.leftovers:
        return "nothing to delete; select runs with --older-than and --status"
    if done:
        return f"{size_text(plan.size)} deleted"
    return f"nothing was deleted; {size_text(plan.size)} would be deleted with --yes"


HELP = """Show what can go, and delete it with --yes: what dead processes left and, if you select some, whole runs.

A run goes with its record, its session, its reports, its refs (a later git gc frees them) and its branch if that is merged.
A run in progress is never touched, and one that can be resumed only if --status names it.

\b
cra prune                            what dead processes left
cra prune --older-than 30d --yes     older runs that have ended
cra prune --status failed --yes      failed runs

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
    "--older-than", metavar="AGE", callback=_age, help="Runs that began longer ago than this: 12h, 30d, 2w."
)
@click.option(
    "--status",
    "statuses",
    type=click.Choice(STATUSES),
    multiple=True,
    help=f"Only runs with this status, or {DISCARDED} ones. Repeatable. By default complete, unproven, failed and {DISCARDED}.",
)
@click.option("-y", "--yes", is_flag=True, help="Delete it.")
@options.repo_option
@options.json_option
def command(
    older_than: timedelta | None, statuses: tuple[str, ...], yes: bool, repo: Path, as_json: bool
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
    plan = plan_pruning(site, older_than, statuses)
    notes = (*plan.notes, *(carry_out(site, plan) if yes else ()))
    if as_json:
        output.answer_json(as_object(plan, notes, done=yes))
    else:
        answers_console().print(*render(sanitized(plan)), sep="\n", highlight=False)
        for note in notes:
            output.answer(note)
        output.answer(verdict(plan, done=yes))
    return 0
