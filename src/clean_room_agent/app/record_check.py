"""`cra check --record`: whether the record is private, undamaged and consistent."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from clean_room_agent.artifacts.names import short_id
from clean_room_agent.artifacts.outcomes import ENDED
from clean_room_agent.db.connection import DAMAGED, Role, connect_file, get_connection
from clean_room_agent.db.integrity import page_faults
from clean_room_agent.db.raw.integrity import RunEnding, chain_faults, list_endings, prompt_faults
from clean_room_agent.db.rows import Connection
from clean_room_agent.errors import CraError, GitError
from clean_room_agent.git.command import require_hex
from clean_room_agent.git.repository import Repository, open_repository
from clean_room_agent.llm.transport import prompt_hash
from clean_room_agent.workspace import Workspace, entries_below, is_held

CHANGED = "another program has changed the record: restore it from a copy, or move it away"


class CheckFinding(Struct, frozen=True, kw_only=True):
    """One thing that was checked: all of it is right, or one fault."""

    name: str
    text: str
    ok: bool = True
    remedy: str = ""
    exit_code: int = 2
    """The exit code of `cra check` if this is the first fault."""


def check_record(workspace: Workspace, *, thorough: bool = False) -> Iterator[CheckFinding]:
    """Check the record in a fixed order, a finding for each fault; if the file itself is damaged, nothing else is checked."""
    yield from _all_or("private", "others can read nothing of it", _open_files(workspace))
    if not workspace.raw.exists():
        yield CheckFinding(name="file", text="nothing has been recorded here yet")
        return
    try:
        conn = get_connection("raw", repo_path=workspace.repo, read_only=True)
    except CraError as error:
        yield CheckFinding(name="file", ok=False, text=error.message, remedy=error.hint)
        return
    with contextlib.closing(conn):
        pages = page_faults(conn, thorough=thorough)
        size = workspace.raw.stat().st_size
        yield from _all_or("file", f"undamaged, {size / 1e6:.1f} MB", pages, DAMAGED["raw"])
        if pages:
            return
        yield from _all_or("prompts", "as they were sent", prompt_faults(conn, prompt_hash), CHANGED)
        yield from _all_or("chains", _record_counts(conn), chain_faults(conn), CHANGED)
        endings = list_endings(conn)
    yield from _all_or("runs", "each running one has a process", _left_alone(workspace, endings))
    yield from _all_or(
        "sessions", "archived for each task that has ended", _session_faults(workspace, endings)
    )
    yield from _all_or("results", "in git, unless they were discarded", _result_faults(workspace, endings))


def _all_or(
    name: str, good: str, faults: tuple[str, ...] | tuple[tuple[str, str], ...], remedy: str = ""
) -> Iterator[CheckFinding]:
    """`good` if there is no fault, otherwise a finding for each; a fault may have its own remedy."""
    if not faults:
        yield CheckFinding(name=name, text=good)
    for fault in faults:
        text, own = (fault, remedy) if isinstance(fault, str) else fault
        yield CheckFinding(name=name, ok=False, text=text, remedy=own)


def _open_files(workspace: Workspace) -> tuple[tuple[str, str], ...]:
    paths = (workspace.folder, *sorted(Path(entry.path) for entry in entries_below(workspace.folder)))
    return tuple(
        (f"others can read {path}", f"chmod go= {path}; the next command that writes does it, too")
        for path in paths
        if path.exists() and not path.is_symlink() and path.stat().st_mode & 0o077
    )


def _record_counts(conn: Connection) -> str:
    tables = ("orchestrator_runs", "task_runs", "retrieval_llm_calls", "run_attempts", "validation_results")
    counts = [conn.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables]  # noqa: S608 - names from above
    words = ("runs", "passes", "calls", "attempts", "test runs")
    return "whole: " + ", ".join(f"{count:,} {word}" for count, word in zip(counts, words, strict=True))


def _left_alone(workspace: Workspace, endings: tuple[RunEnding, ...]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (
            f"run {short_id(ending.task_id)} is recorded as running, but has no process",
            f"cra solve --resume {short_id(ending.task_id)}, or `cra discard {short_id(ending.task_id)}`",
        )
        for ending in endings
        if ending.status == "running"
        and not ending.discarded
        and not is_held(workspace.task_lock(ending.task_id))
    )


def _session_faults(workspace: Workspace, endings: tuple[RunEnding, ...]) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    for ending in endings:
        run = short_id(ending.task_id)
        if ending.status in ENDED and workspace.session(ending.task_id).exists():
            if is_held(workspace.task_lock(ending.task_id)):
                continue
            found.append(
                (f"run {run} has ended, but its session is not archived", f"`cra discard {run}` archives it")
            )
        elif ending.status in ENDED and not ending.archived:
            found.append((f"run {run} has ended, but its session is lost", "its calls are still on record"))
    for path in sorted(workspace.sessions.glob("session_*.sqlite")):
        if faults := _file_faults("session", path):
            remedy = "move it away: the task cannot be resumed, but its record stays"
            found.append((f"{path}: {faults[0]}", remedy))
    return tuple(found)


def _file_faults(role: Role, path: Path) -> tuple[str, ...]:
    """What is damaged in a database, a line each."""
    try:
        with contextlib.closing(connect_file(role, path, read_only=True)) as conn:
            return page_faults(conn, thorough=True)
    except CraError as error:
        return (error.message,)


def find_damage(workspace: Workspace) -> CheckFinding | None:
    """The first of the databases that is damaged, with the remedy."""
    files: list[tuple[Role, Path]] = [("raw", workspace.raw), ("curated", workspace.curated)]
    files += [("session", path) for path in sorted(workspace.sessions.glob("session_*.sqlite"))]
    for role, path in files:
        if path.exists() and (faults := _file_faults(role, path)):
            more = f" (and {len(faults) - 1} more)" if faults[1:] else ""
            return CheckFinding(
                name=role, ok=False, text=f"{path} is damaged: {faults[0]}{more}", remedy=DAMAGED[role]
            )
    return None


def _result_faults(workspace: Workspace, endings: tuple[RunEnding, ...]) -> tuple[tuple[str, str], ...]:
    kept = [
        ending for ending in endings if ending.branch and not ending.discarded and ending.command != "replay"
    ]
    if not kept:
        return ()
    try:
        repo = open_repository(workspace.repo)
    except CraError as error:
        return ((error.message, error.hint),)
    return tuple(fault for ending in kept if (fault := _result_fault(repo, ending)))


def _result_fault(repo: Repository, ending: RunEnding) -> tuple[str, str] | None:
    run = short_id(ending.task_id)
    try:
        standing = repo.git("for-each-ref", "--count=1", "--contains", require_hex(ending.result_commit))
    except GitError:
        return (
            f"git no longer has the result of run {run}",
            f"`cra show {run} --diff` still has its diff; `cra discard {run}` notes that the rest is gone",
        )
    if standing.strip():
        return None
    return (
        f"no branch holds the result of run {run}: git will delete it",
        f"git branch {ending.branch} {ending.result_commit}, or `cra discard {run}`",
    )
