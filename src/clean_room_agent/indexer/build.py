"""A repository becomes `curated.sqlite`: a first build beside it, or one transaction on it."""

import contextlib
import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from clean_room_agent.db.connection import get_connection, transaction
from clean_room_agent.db.curated import files, history, metadata, state, symbols
from clean_room_agent.db.curated.files import FileStamp
from clean_room_agent.db.curated.load import new_database
from clean_room_agent.db.rows import Connection
from clean_room_agent.errors import IndexingError
from clean_room_agent.git.repository import find_top, list_files, remote_url
from clean_room_agent.indexer.config import IndexConfig
from clean_room_agent.indexer.extract import Failed, FileFacts, Skipped
from clean_room_agent.indexer.history import HEAD_KEY, UNPLACED_KEY, refresh_history
from clean_room_agent.indexer.scan import Scan, scan
from clean_room_agent.indexer.search_rows import write_postings
from clean_room_agent.indexer.workers import extract_all
from clean_room_agent.indexer.write import IMPORTS_PREFIX, FileWriter, write_dependencies
from clean_room_agent.workspace import Workspace, hold

VERSION = "1"
"""Raised whenever the same files would give other rows: the next `cra index` is then a full one."""
SCANNED_KEY = "scanned_at_ns"
SETTINGS_KEY = "settings"
MAX_BYTES_KEY = "max_file_bytes"
PROGRESS_STEP = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSummary:
    """What an index run did."""

    files_scanned: int
    files_changed: int
    """New, or with other content than before."""
    files_deleted: int
    symbols: int
    """In the whole index."""
    duration_ms: int
    failures: tuple[tuple[str, str], ...]
    """(path, message), by path; only with `continue_on_error`."""
    commits: int
    """In the whole index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One index run's settings."""

    root: Path
    config: IndexConfig
    jobs: int
    full: bool
    continue_on_error: bool
    progress: Callable[[int, int], None]
    now_ns: int


def index_repository(
    repo_path: Path,
    *,
    config: IndexConfig,
    jobs: int,
    full: bool = False,
    continue_on_error: bool = False,
    progress: Callable[[int, int], None],
    clock_ns: Callable[[], int] = time.time_ns,
) -> IndexSummary:
    """The repository's `curated.sqlite` describes its files and its history as they are.

    Args:
        repo_path: a folder of the work tree.
        config: bounds.
        jobs: processes that read files; 1 reads in this one.
        full: everything is read anew.
        continue_on_error: a file that cannot be read is left out, and named in the summary.
        progress: is called with the number of files read, and of files to read.
        clock_ns: nanoseconds since 1970 UTC.

    Raises:
        RepositoryError: there is no repository with a work tree.
        IndexingError: a file cannot be read or decoded; nothing was changed.
        RecordError: another process indexes this repository for longer than `lock_timeout`.
    """
    began = time.monotonic()
    root = find_top(repo_path)
    workspace = Workspace(repo=root)
    workspace.create()
    with hold(workspace.index_lock, timeout=config.lock_timeout, what="the index"), _collector_off():
        # Taken before the scan: what is written to a file while it runs must look racy to the next one.
        run = _Run(
            root=root,
            config=config,
            jobs=jobs,
            full=full,
            continue_on_error=continue_on_error,
            progress=progress,
            now_ns=clock_ns(),
        )
        if workspace.curated.exists():
            with contextlib.closing(get_connection("curated", repo_path=root)) as conn, transaction(conn):
                summary = _refresh(conn, run)
        else:
            with new_database(workspace.curated) as conn:
                summary = _refresh(conn, run)
    return replace(summary, duration_ms=round((time.monotonic() - began) * 1000))


def update_paths(conn: Connection, root: Path, paths: Sequence[str]) -> None:
    """The open index describes these files of `root` as they are now, the missing ones as gone; history stays.

    Raises:
        IndexingError: a file cannot be read or decoded; nothing was changed.
    """
    known = {stamp.path: stamp for stamp in files.list_stamps(conn)}
    wanted = {path: known[path] for path in paths if path in known}
    max_bytes = int(state.get_state(conn, MAX_BYTES_KEY) or IndexConfig().max_file_bytes)
    found = scan(root, paths, wanted, scanned_at=0, max_bytes=max_bytes)
    with transaction(conn):
        repo = files.get_repo(conn)
        if repo is None:
            raise IndexingError("the index is empty", hint="run `cra index` in the repository")
        writer = FileWriter(conn, repo.id)
        writer.remove(found.gone)
        for facts in extract_all(root, found.suspects, max_bytes=max_bytes, jobs=1):
            if isinstance(facts, Failed):
                raise _failure(facts)
            if isinstance(facts, Skipped):
                writer.remove([facts.path])
            elif facts.path not in known or known[facts.path].content_hash != facts.content_hash:
                writer.write(facts)
        write_dependencies(conn, writer.ids, writer.changes)
        write_postings(conn, writer.changes.terms, (), blank=False)


def _refresh(conn: Connection, run: _Run) -> IndexSummary:
    settings = f"{VERSION} {run.config.model_dump_json(exclude={'lock_timeout'})}"
    carried: tuple[metadata.CarriedTuple, ...] = ()
    if run.full or state.get_state(conn, SETTINGS_KEY) != settings:
        carried = metadata.list_carried(conn)
        _clear(conn)
    stamp = datetime.fromtimestamp(run.now_ns / 1e9, tz=UTC).isoformat()
    repo_id = files.put_repo(conn, path=str(run.root), remote_url=remote_url(run.root), indexed_at=stamp)
    known = {stamp.path: stamp for stamp in files.list_stamps(conn)}
    scanned_at = int(state.get_state(conn, SCANNED_KEY) or 0)
    max_bytes = run.config.max_file_bytes
    found = scan(run.root, list_files(run.root), known, scanned_at=scanned_at, max_bytes=max_bytes)
    writer = FileWriter(conn, repo_id)
    writer.remove(found.gone)
    failures = _read_suspects(conn, run, writer, found, known)
    write_dependencies(conn, writer.ids, writer.changes)
    past = refresh_history(
        conn,
        run.root,
        run.config,
        repo_id=repo_id,
        ids=writer.ids,
        added=writer.changes.added,
        removed=writer.changes.removed,
    )
    write_postings(conn, writer.changes.terms, past.stale, blank=not known)
    metadata.restore_carried(conn, carried)
    state.put_state(conn, SETTINGS_KEY, settings)
    state.put_state(conn, MAX_BYTES_KEY, str(max_bytes))
    state.put_state(conn, SCANNED_KEY, str(run.now_ns))
    return IndexSummary(
        files_scanned=len(found.present),
        files_changed=len(writer.changes.written),
        files_deleted=len(writer.changes.removed),
        symbols=symbols.count_symbols(conn),
        duration_ms=0,
        failures=failures,
        commits=history.count_commits(conn),
    )


def _read_suspects(
    conn: Connection, run: _Run, writer: FileWriter, found: Scan, known: Mapping[str, FileStamp]
) -> tuple[tuple[str, str], ...]:
    failures: list[tuple[str, str]] = []
    total = len(found.suspects)
    all_facts = extract_all(run.root, found.suspects, max_bytes=run.config.max_file_bytes, jobs=run.jobs)
    with contextlib.closing(all_facts):
        for number, facts in enumerate(all_facts, start=1):
            if isinstance(facts, FileFacts):
                stamp = known.get(facts.path)
                if stamp is None or stamp.content_hash != facts.content_hash:
                    writer.write(facts)
                else:
                    files.update_stamp(conn, stamp.id, facts.mtime_ns, facts.inode)
            elif isinstance(facts, Failed) and not run.continue_on_error:
                raise _failure(facts)
            else:
                writer.remove([facts.path])
                if isinstance(facts, Failed):
                    failures.append((facts.path, facts.message))
            if number % PROGRESS_STEP == 0 or number == total:
                run.progress(number, total)
    return tuple(failures)


def _clear(conn: Connection) -> None:
    """Nothing derived is left."""
    history.clear_history(conn)
    files.delete_files(conn, [stamp.id for stamp in files.list_stamps(conn)])
    for key in (
        HEAD_KEY,
        UNPLACED_KEY,
        SCANNED_KEY,
        *(key for key, _ in state.list_state(conn, IMPORTS_PREFIX)),
    ):
        state.delete_state(conn, key)


def _failure(failed: Failed) -> IndexingError:
    return IndexingError(
        f"{failed.path} {failed.message}", hint="mend it, or leave it out with --continue-on-error"
    )


@contextlib.contextmanager
def _collector_off() -> Iterator[None]:
    """Millions of long-lived tuples make the cyclic collector run often and find nothing: a sixth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
