import contextlib
import os
import time
from pathlib import Path

import pytest
from testing.patience import PATIENCE
from testing.repositories import make_repository

from clean_room_agent.app.background_index import BackgroundIndex
from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.rows import Connection
from clean_room_agent.errors import IndexingError
from clean_room_agent.indexer.config import IndexConfig
from clean_room_agent.workspace import Workspace

FILES = {f"pkg/m{number}.py": f"def f{number}():\n    return {number}\n" for number in range(40)}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(repo=make_repository(tmp_path / "repo", FILES))


def opened(path: Path) -> contextlib.closing[Connection]:
    return contextlib.closing(connect_file("curated" if path.name == "curated.sqlite" else "raw", path))


def is_running(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def test_who_waits_finds_the_index_up_to_date_and_the_run_on_record(workspace: Workspace) -> None:
    told: list[tuple[int, int]] = []
    with BackgroundIndex(workspace, IndexConfig()) as index:
        index.wait(lambda done, total: told.append((done, total)))
        with opened(workspace.curated) as conn:
            assert conn.execute("SELECT count(*) FROM files").fetchone()[0] == len(FILES)
    with opened(workspace.raw) as record:
        assert [row["status"] for row in record.execute("SELECT status FROM index_runs")] == ["complete"]
    assert all(done <= total for done, total in told)


def test_what_went_wrong_is_raised_where_somebody_waits(workspace: Workspace) -> None:
    (workspace.repo / "pkg" / "m1.py").write_bytes(b"# coding: nonsense\nx = '\xff'\n")
    with (
        BackgroundIndex(workspace, IndexConfig()) as index,
        pytest.raises(IndexingError, match=r"pkg/m1\.py"),
    ):
        index.wait(lambda _done, _total: None)


def test_nobody_waits_and_nothing_is_left_running(workspace: Workspace) -> None:
    began = time.monotonic()
    with BackgroundIndex(workspace, IndexConfig()) as index:
        (process,) = index._pool._children.values()
        assert is_running(process)
    assert not is_running(process)
    assert time.monotonic() - began < PATIENCE
    with BackgroundIndex(workspace, IndexConfig()) as again:
        again.wait(lambda _done, _total: None)
