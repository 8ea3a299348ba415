"""Index runs are recorded, also failed ones."""

from pathlib import Path

import pytest

from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.indexing import index_recorded, processors
from clean_room_agent.db.raw.indexing import INDEX_RUNS
from clean_room_agent.db.raw.record import Record
from clean_room_agent.errors import IndexingError
from clean_room_agent.indexer.build import IndexSummary


def fail() -> IndexSummary:
    raise IndexingError("a file cannot be read")


def test_a_failed_run_is_recorded_and_its_error_rises(tmp_path: Path) -> None:
    with Record.open(tmp_path, clock=utc_now) as record:
        for opened in (record, None):
            with pytest.raises(IndexingError):
                index_recorded(tmp_path, fail, opened)
        rows = record.write(INDEX_RUNS.select, "ORDER BY id")
    assert [(row.status, row.repo_path, row.files_scanned) for row in rows] == [
        ("failed", str(tmp_path), 0)
    ] * 2


def test_at_least_one_processor_is_used() -> None:
    assert processors() >= 1
