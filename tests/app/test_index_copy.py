import contextlib
import sqlite3
from pathlib import Path

import pytest
from testing.runs.solving import make_project
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.app import wiring
from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.index_copy import IndexCopy
from clean_room_agent.app.index_process import IndexProcess, Refresh
from clean_room_agent.app.run_wiring import run_parts, task_of
from clean_room_agent.app.settings import Overrides, load_settings
from clean_room_agent.git.repository import open_repository
from clean_room_agent.orchestrator.events import Nobody
from clean_room_agent.orchestrator.time_log import TimeLog
from clean_room_agent.workspace import Workspace


def test_what_retrieval_reads_through_cannot_be_written(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    with OllamaServer(project.oracle) as server:
        project.configure(server.base_url)
        workspace = Workspace(repo=project.top)
        settings = load_settings(workspace.config, Overrides())
        repo = open_repository(project.top)
        with contextlib.ExitStack() as stack:
            indexing = stack.enter_context(IndexProcess(Refresh(workspace, settings.index)))
            services = stack.enter_context(wiring.open_services(workspace, settings, "wall"))
            parts = stack.enter_context(
                run_parts(
                    services,
                    repo,
                    task_of(settings, "wall", "x"),
                    Nobody(),
                    indexing=indexing,
                    command="solve",
                    times=TimeLog("wall", utc_now),
                )
            )
            copy = parts.index
            assert isinstance(copy, IndexCopy)
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
