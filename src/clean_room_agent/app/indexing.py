"""Index runs and their rows in the record; imports little, as an index that found nothing changed takes a moment."""

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from clean_room_agent.db.raw.index_runs import IndexRunRow
from clean_room_agent.indexer.build import IndexSummary


def processors() -> int:
    """How many processors this process may use; in a container, fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def index_recorded(
    repo: Path,
    run: Callable[[], IndexSummary],
    *,
    note: Callable[[IndexRunRow, Sequence[tuple[str, str]]], object],
    now: Callable[[], str],
) -> IndexSummary:
    """What `run` says it did; the record has the run, also when it failed.

    Args:
        repo: the repository's top.
        run: indexes.
        note: appends a row to the record, and the folders that were left out with what each is.
        now: the time as UTC, ISO 8601.
    """
    started = time.monotonic()

    def row(status: Literal["complete", "partial", "failed"], summary: IndexSummary | None) -> IndexRunRow:
        return IndexRunRow(
            repo_path=str(repo),
            files_scanned=summary.files_scanned if summary else 0,
            files_changed=summary.files_changed if summary else 0,
            files_deleted=summary.files_deleted if summary else 0,
            symbols=summary.symbols if summary else 0,
            commits=summary.commits if summary else 0,
            duration_ms=round((time.monotonic() - started) * 1000),
            status=status,
            failures=summary.failures if summary else (),
            timestamp=now(),
        )

    try:
        summary = run()
    except BaseException:
        note(row("failed", None), ())
        raise
    note(
        row("partial" if summary.failures else "complete", summary),
        tuple((folder.path, folder.what) for folder in summary.generated),
    )
    return summary
