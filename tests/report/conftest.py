"""The record of a run of many calls, read only."""

import contextlib
from collections.abc import Iterator

import pytest
from msgspec import Struct
from testing.repositories import make_repository
from testing.runs.large_run import write_large_run

from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.rows import Connection
from clean_room_agent.report.trace import Chosen, RunTrace, read_trace


class LargeRun(Struct, frozen=True, kw_only=True):
    conn: Connection
    trace: RunTrace

    @property
    def all(self) -> Chosen:
        return Chosen(place="", passes=self.trace.passes)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LargeRun]:
    top = make_repository(tmp_path_factory.mktemp("report") / "shop", {"src/a.py": "x = 1\n"})
    task = write_large_run(top, count=80)
    with contextlib.closing(get_connection("raw", repo_path=top, read_only=True)) as conn:
        yield LargeRun(conn=conn, trace=read_trace(conn, task))
