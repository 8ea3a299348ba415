"""`cra index`, and how index runs are recorded. Imports little, so that an index with nothing to do takes a moment."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from clean_room_agent.app.clock import utc_now
from clean_room_agent.db.raw.indexing import IndexRunRow, append_index_run
from clean_room_agent.db.raw.record import Record
from clean_room_agent.git.repository import Listing
from clean_room_agent.indexer.build import IndexSummary, index_repository
from clean_room_agent.indexer.index_run import Bounds, digest_of, recall
from clean_room_agent.workspace import Workspace, trusted_workspace


def processors() -> int:
    """How many processors this process may use, which in a container may be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def index_work_tree(
    listing: Listing, *, full: bool, continue_on_error: bool, progress: Callable[[int, int], None]
) -> IndexSummary:
    """Bring the index of a working tree up to date, with a row in its record.

    Raises:
        ConfigError: the configuration is invalid.
        IndexingError: a file cannot be read, and `continue_on_error` is not set.
    """
    workspace = trusted_workspace(listing.top, listing.paths)
    workspace.create()
    digest = digest_of(workspace.config)
    return index_recorded(
        workspace.repo,
        partial(
            index_repository,
            workspace.repo,
            config=_index_bounds(workspace, digest),
            jobs=processors(),
            full=full,
            continue_on_error=continue_on_error,
            listing=listing,
            digest=digest,
            progress=progress,
        ),
    )


def refresh_index(
    workspace: Workspace,
    bounds: Bounds,
    record: Record,
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> IndexSummary:
    """Bring the repository's index up to date, with a row in the record."""
    workspace.create()
    return index_recorded(
        workspace.repo,
        partial(index_repository, workspace.repo, config=bounds, jobs=processors(), progress=progress),
        record,
    )


def _index_bounds(workspace: Workspace, digest: str) -> Bounds:
    """The index's part of the configuration; the whole file is validated only if it changed since the last index."""
    known = recall(workspace.curated, digest)
    if known is not None:
        return known
    from clean_room_agent.app.settings import Overrides, load_settings

    return load_settings(workspace.config, Overrides(), optional=True).index


def index_recorded(repo: Path, run: Callable[[], IndexSummary], record: Record | None = None) -> IndexSummary:
    """Run the indexer on the repository at `repo` and record that, even if it fails; returns its summary. Without an open
    `record`, that of the repository is opened at the end.
    """

    def write(row: IndexRunRow, generated: Sequence[tuple[str, str]]) -> None:
        with contextlib.nullcontext(record) if record else Record.open(repo, clock=utc_now) as opened:
            opened.write(append_index_run, row, generated)

    started = time.monotonic()

    def row(status: Literal["complete", "partial", "failed"], **counts: Any) -> IndexRunRow:
        duration_ms = round((time.monotonic() - started) * 1000)
        return IndexRunRow(
            repo_path=str(repo), status=status, duration_ms=duration_ms, timestamp=utc_now(), **counts
        )

    try:
        summary = run()
    except BaseException:
        write(row("failed", files_scanned=0, files_changed=0), ())
        raise
    finished = row(
        "partial" if summary.failures else "complete",
        files_scanned=summary.files_scanned,
        files_changed=summary.files_changed,
        files_deleted=summary.files_deleted,
        symbols=summary.symbols,
        commits=summary.commits,
        failures=summary.failures,
    )
    write(finished, tuple((folder.path, folder.what) for folder in summary.generated))
    return summary
