import contextlib
import os
import sqlite3
import time
from functools import partial
from pathlib import Path

import pytest
from testing.patience import PATIENCE
from testing.repositories import make_repository
from testing.runs.solving import make_project
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.app import wiring
from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.run_index import (
    RUN_COMMIT_KEY,
    IndexCopy,
    IndexProcess,
    index_commit,
    index_tree,
    refresh_for_run,
)
from clean_room_agent.app.run_wiring import run_parts, task_of
from clean_room_agent.app.settings import Overrides, load_settings
from clean_room_agent.artifacts.outcomes import TimeKind
from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.curated import files
from clean_room_agent.db.raw.runs import TimeSpanRow
from clean_room_agent.db.rows import Connection
from clean_room_agent.errors import IndexingError
from clean_room_agent.git.repository import open_repository
from clean_room_agent.indexer.index_config import IndexConfig
from clean_room_agent.orchestrator.events import Nobody
from clean_room_agent.orchestrator.spending import TimeLog
from clean_room_agent.orchestrator.task import PlanGiven
from clean_room_agent.workspace import Workspace

TASK = "5f0c9a1e-7d2b-4c1e-9f3a-2b6d8e4a1c70"
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
    with IndexProcess(partial(refresh_for_run, workspace, IndexConfig(), TASK)) as index:
        index.wait(lambda done, total: told.append((done, total)))
        with opened(workspace.curated) as conn:
            assert conn.execute("SELECT count(*) FROM files").fetchone()[0] == len(FILES)
    with opened(workspace.raw) as record:
        assert [row["status"] for row in record.execute("SELECT status FROM index_runs")] == ["complete"]
    with contextlib.closing(connect_file("curated", workspace.run_copy(TASK))) as copy:
        assert copy.execute("SELECT count(*) FROM files").fetchone()[0] == len(FILES)
    assert all(done <= total for done, total in told)


def test_the_index_run_is_timed(workspace: Workspace) -> None:
    rows: list[TimeSpanRow] = []
    times = TimeLog("task", utc_now)
    with (
        times.connected(rows.append),
        IndexProcess(partial(refresh_for_run, workspace, IndexConfig(), TASK), times.timed) as index,
    ):
        index.wait(lambda _done, _total: None)
    (row,) = rows
    assert (row.kind, row.task_id) == (TimeKind.INDEX, "task")
    assert row.began_at < row.ended_at


def test_what_went_wrong_is_raised_where_somebody_waits(workspace: Workspace) -> None:
    (workspace.repo / "pkg" / "m1.py").write_bytes(b"# coding: nonsense\nx = '\xff'\n")
    with (
        IndexProcess(partial(refresh_for_run, workspace, IndexConfig(), TASK)) as index,
        pytest.raises(IndexingError, match=r"pkg/m1\.py"),
    ):
        index.wait(lambda _done, _total: None)


def test_nobody_waits_and_nothing_is_left_running(workspace: Workspace) -> None:
    began = time.monotonic()
    with IndexProcess(partial(refresh_for_run, workspace, IndexConfig(), TASK)) as index:
        (process,) = index._pool._children.values()
        assert is_running(process)
    assert not is_running(process)
    assert time.monotonic() - began < PATIENCE
    with IndexProcess(partial(refresh_for_run, workspace, IndexConfig(), TASK)) as again:
        again.wait(lambda _done, _total: None)


def test_jobs_are_done_in_turn_and_after_the_first(workspace: Workspace) -> None:
    told: list[tuple[int, int]] = []
    with IndexProcess(partial(refresh_for_run, workspace, IndexConfig(), TASK)) as index:
        (workspace.repo / "pkg" / "m1.py").write_text("def changed():\n    return 1\n")
        for commit in ("c0ffee", "c0ffee2"):
            index.do(
                partial(index_commit, workspace.curated, workspace.repo, ("pkg/m1.py",), commit),
                lambda done, total: told.append((done, total)),
            )
            with opened(workspace.curated) as conn:
                assert files.get_index_state(conn, RUN_COMMIT_KEY) == commit
    with opened(workspace.curated) as conn:
        names = {row["name"] for row in conn.execute("SELECT name FROM symbols")}
    assert {"changed", "f2"} <= names
    assert "f1" not in names


def test_a_work_tree_is_indexed_without_a_row_in_a_record(workspace: Workspace) -> None:
    with IndexProcess() as index:
        index.do(partial(index_tree, workspace.repo, IndexConfig()), lambda _done, _total: None)
    assert workspace.curated.exists()
    assert not workspace.raw.exists()


def test_a_job_that_fails_says_so_to_who_asked_for_it(workspace: Workspace) -> None:
    (workspace.repo / "pkg" / "m1.py").write_bytes(b"# coding: nonsense\nx = '\xff'\n")
    with IndexProcess() as index, pytest.raises(IndexingError, match=r"pkg/m1\.py"):
        index.do(partial(index_tree, workspace.repo, IndexConfig()), lambda _done, _total: None)


def test_what_retrieval_reads_through_cannot_be_written(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    with OllamaServer(project.oracle) as server:
        project.configure(server.base_url)
        workspace = Workspace(repo=project.top)
        settings = load_settings(workspace.config, Overrides())
        repo = open_repository(project.top)
        with contextlib.ExitStack() as stack:
            indexing = stack.enter_context(
                IndexProcess(partial(refresh_for_run, workspace, settings.index, "wall"))
            )
            services = stack.enter_context(wiring.open_services(workspace, settings, "wall"))
            parts = stack.enter_context(
                run_parts(
                    services,
                    repo,
                    task_of(settings, "wall", "x", PlanGiven()),
                    Nobody(),
                    indexing=indexing,
                    command="solve",
                    times=TimeLog("wall", utc_now),
                )
            )
            copy = parts.index
            assert isinstance(copy, IndexCopy)
            indexing.wait(lambda _done, _total: None)
            workspace.run_copy(
                "wall"
            ).unlink()  # as another command that clears up may have done before the run had its lock
            reading = copy.source._kb._conn
            assert reading.execute("SELECT count(*) FROM files").fetchone()[0] == 5
            with pytest.raises(sqlite3.OperationalError, match="readonly database"):
                reading.execute("DELETE FROM files")
            reading.execute("PRAGMA query_only = OFF")
            with pytest.raises(sqlite3.OperationalError, match="readonly database"):
                reading.execute("DELETE FROM files")
            copy.refresh(project.top, ("till/money.py",), "c0ffee")
            assert copy.described() == "c0ffee"
            assert copy.source._kb._conn is reading
            services.end_task()
