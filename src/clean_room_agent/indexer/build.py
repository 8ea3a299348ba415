"""Builds or updates `curated.sqlite` of a repository."""

import contextlib
import gc
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct, structs

from clean_room_agent.db.connection import get_connection, transaction
from clean_room_agent.db.curated import files
from clean_room_agent.db.curated.bulk_load import remove_draft
from clean_room_agent.db.rows import Connection
from clean_room_agent.git.generated import Generated
from clean_room_agent.git.repository import Listing, list_work_tree
from clean_room_agent.indexer.history.build import HistoryState, PendingHistory, begin_history, read_state
from clean_room_agent.indexer.index_run import (
    SCANNED_KEY,
    SETTINGS_KEY,
    Bounds,
    IndexOutcome,
    IndexRun,
    failure,
    put_repo,
    put_states,
)
from clean_room_agent.indexer.scan import scan
from clean_room_agent.indexer.update import settle, update_files
from clean_room_agent.workspace import Workspace, hold

MANY = 200
"""More changed files than these, if they are more than half of all, are sooner read with all others: workers write then."""


class IndexSummary(Struct, frozen=True, kw_only=True):
    """Totals of one index run, for the user."""

    files_scanned: int
    files_changed: int
    """New, or with other content than before."""
    files_deleted: int
    symbols: int
    """In the whole index."""
    duration_ms: int = 0
    """Known at the end."""
    failures: tuple[tuple[str, str], ...]
    """(path, message), by path; only with `continue_on_error`."""
    unparsed: tuple[tuple[str, str], ...]
    """(path, reason) of the source files in the index that are text only, as the parser was stopped; by path."""
    left_out: tuple[tuple[str, str], ...]
    """(path, reason) of the files that are not in the index: too large, oddly named, or no text though their names say source code."""
    generated: tuple[Generated, ...]
    """Folders of which nothing is in the index, as tools made them and git tracks nothing in them."""
    commits: int
    """In the whole index."""


def index_repository(
    repo_path: Path,
    *,
    config: Bounds,
    jobs: int,
    full: bool = False,
    continue_on_error: bool = False,
    listing: Listing | None = None,
    digest: str = "",
    progress: Callable[[int, int], None],
    clock_ns: Callable[[], int] = time.time_ns,
) -> IndexSummary:
    """Bring the repository's `curated.sqlite` up to date with its files and its git history.

    `repo_path` is any folder of the working tree, `listing` that tree as git lists it, if the caller has it already; `digest` is of
    the configuration that `config` was read from (`index_run.recall` looks it up). With `continue_on_error`, a file that cannot be
    read is left out and named in the summary. `progress` is called with the number of files read so far and the total.

    Raises:
        RepositoryError: there is no repository with a working tree.
        IndexingError: a file cannot be read or decoded; nothing was changed.
        RecordError: another process has been indexing this repository for longer than `config.lock_timeout`.
    """
    began = time.monotonic()
    listing = listing or list_work_tree(repo_path)
    workspace = Workspace(repo=listing.top)
    workspace.create()
    with hold(workspace.index_lock, timeout=config.lock_timeout, what="the index"), _collector_off():
        # Taken before the scan, so that a file written during the scan looks racy to the next one.
        run = IndexRun(
            listing=listing,
            bounds=config,
            jobs=jobs,
            continue_on_error=continue_on_error,
            progress=progress,
            now_ns=clock_ns(),
            digest=digest,
        )
        remove_draft(workspace.curated)
        summary = _update_index(run) if workspace.curated.exists() and not full else None
        if summary is None:
            summary = _build_index(run, workspace.curated)
    return structs.replace(summary, duration_ms=round((time.monotonic() - began) * 1000))


def _build_index(run: IndexRun, target: Path) -> IndexSummary:
    # Git goes first: it works while we import the parsers and list the files.
    with _pending_history(run, None) as past:
        from clean_room_agent.indexer.full_build import build_whole  # noqa: PLC0415 - parsers, which most runs need not

        outcome = build_whole(run, past, target)
    with contextlib.closing(get_connection("curated", repo_path=run.listing.top, read_only=True)) as conn:
        return _summary(conn, run, outcome)


def _update_index(run: IndexRun) -> IndexSummary | None:
    """Update the index in place; return None if it must be rebuilt (at most some file stamps were changed)."""
    top, max_bytes = run.listing.top, run.bounds.max_file_bytes
    with contextlib.closing(get_connection("curated", repo_path=top)) as conn, transaction(conn):
        if files.get_index_state(conn, SETTINGS_KEY) != run.settings:
            return None
        known = files.list_stamps(conn)
        scanned_at = int(files.get_index_state(conn, SCANNED_KEY) or 0)
        found = scan(top, run.listing.paths, known, scanned_at=scanned_at, max_bytes=max_bytes)
        found = settle(conn, top, found)
        if len(found.suspects) > max(MANY, len(found.present) // 2):
            return None
        with _pending_history(run, read_state(conn)) as past:
            outcome = update_files(conn, top, found, max_bytes=max_bytes, jobs=run.jobs)
            if outcome.failures and not run.continue_on_error:
                raise failure(outcome.failures[0])
            repo_id = put_repo(conn, run)
            if past.is_news or outcome.changed or outcome.deleted:
                past.collect()
                past.write(conn, repo_id=repo_id, ids=files.list_ids(conn))
        put_states(conn, run)
        return _summary(conn, run, outcome)


def _pending_history(run: IndexRun, known: HistoryState | None) -> contextlib.closing[PendingHistory]:
    """Start reading git history; on leaving the block, whatever git is still doing is abandoned."""
    return contextlib.closing(begin_history(run.listing.top, run.bounds, head=run.listing.head, state=known))


def _summary(conn: Connection, run: IndexRun, outcome: IndexOutcome) -> IndexSummary:
    return IndexSummary(
        files_scanned=outcome.scanned,
        files_changed=outcome.changed,
        files_deleted=outcome.deleted,
        symbols=files.count_symbols(conn),
        failures=tuple((one.path, one.message) for one in outcome.failures),
        left_out=tuple(sorted([*files.list_left_out(conn), *outcome.left_out.items(), *run.listing.encoded])),
        unparsed=files.list_unparsed(conn),
        generated=run.listing.generated,
        commits=files.count_commits(conn),
    )


@contextlib.contextmanager
def _collector_off() -> Iterator[None]:
    """Switch off the cyclic garbage collector.

    It runs often on millions of long-lived tuples and finds nothing, which takes a sixth of the time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
