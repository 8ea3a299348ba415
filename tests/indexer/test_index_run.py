"""What all parts of one index run share, and what the index remembers of it."""

import contextlib
from pathlib import Path

from clean_room_agent.db.connection import connect_memory
from clean_room_agent.db.curated import files
from clean_room_agent.git.repository import Listing
from clean_room_agent.indexer.index_config import IndexConfig
from clean_room_agent.indexer.index_run import (
    SCANNED_KEY,
    SETTINGS_KEY,
    IndexRun,
    put_repo,
    put_states,
)


def run_of(config: IndexConfig, now_ns: int = 0) -> IndexRun:
    listing = Listing(top=Path("/r"), head=None, paths=(), remote_url="url")
    return IndexRun(
        listing=listing,
        bounds=config,
        jobs=1,
        continue_on_error=False,
        progress=lambda _done, _total: None,
        now_ns=now_ns,
        digest="",
    )


def test_bounds_that_change_rows_are_in_the_settings() -> None:
    same = {run_of(IndexConfig()).settings, run_of(IndexConfig(lock_timeout=1)).settings}
    other = {run_of(IndexConfig(**{key: 7})).settings for key in ("history", "max_file_bytes", "pair_bound")}
    assert len(same) == 1
    assert len(other | same) == 4


def test_the_index_says_what_it_was_made_with_and_when() -> None:
    run = run_of(IndexConfig(), now_ns=1_767_225_600 * 10**9)
    with contextlib.closing(connect_memory("curated")) as conn:
        put_repo(conn, run)
        put_states(conn, run)
        repo = files.get_repo(conn)
        assert repo is not None
        assert (repo.path, repo.indexed_at) == ("/r", "2026-01-01T00:00:00+00:00")
        assert files.get_index_state(conn, SETTINGS_KEY) == run.settings
        assert files.get_index_state(conn, SCANNED_KEY) == str(run.now_ns)
