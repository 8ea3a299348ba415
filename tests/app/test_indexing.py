"""Index runs are recorded, also failed ones."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from clean_room_agent.app.indexing import index_recorded, processors
from clean_room_agent.db.raw.indexing import IndexRunRow
from clean_room_agent.errors import IndexingError
from clean_room_agent.indexer.build import IndexSummary


class Record:
    """Keeps the rows that it is given."""

    def __init__(self) -> None:
        self.rows: list[IndexRunRow] = []

    def append(self, row: IndexRunRow, generated: Sequence[tuple[str, str]]) -> None:
        assert generated == ()
        self.rows.append(row)


def fail() -> IndexSummary:
    raise IndexingError("a file cannot be read")


def test_a_failed_run_is_recorded_and_its_error_rises() -> None:
    record = Record()
    with pytest.raises(IndexingError):
        index_recorded(Path("/repo"), fail, append=record.append, now=lambda: "2026-01-02T03:04:05Z")
    (row,) = record.rows
    assert (row.status, row.repo_path, row.files_scanned) == ("failed", "/repo", 0)
    assert row.timestamp == "2026-01-02T03:04:05Z"


def test_at_least_one_processor_is_used() -> None:
    assert processors() >= 1
