"""The record of a run of many calls, read only, and what its page is made of."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct
from testing.repositories import make_repository
from testing.runs.large_run import write_large_run

from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.raw.calls import list_prompt_spans
from clean_room_agent.db.rows import Connection
from clean_room_agent.report.call_texts import call_texts
from clean_room_agent.report.page.run_page import RunSources
from clean_room_agent.report.summary import Ending
from clean_room_agent.report.trace import Chosen, RunTrace, read_trace
from clean_room_agent.report.windows import window_accounts


class LargeRun(Struct, frozen=True, kw_only=True):
    top: Path
    conn: Connection
    trace: RunTrace

    @property
    def all(self) -> Chosen:
        return Chosen(place="", passes=self.trace.passes)


@contextlib.contextmanager
def large_run(folder: Path, count: int) -> Iterator[LargeRun]:
    """A run of so many calls in the record of a repository below `folder`."""
    top = make_repository(folder / "shop", {"src/a.py": "x = 1\n"})
    task = write_large_run(top, count=count)
    with contextlib.closing(get_connection("raw", repo_path=top, read_only=True)) as conn:
        yield LargeRun(top=top, conn=conn, trace=read_trace(conn, task))


def sources_of(run: LargeRun) -> RunSources:
    """What its page is made of."""
    return RunSources(
        trace=run.trace,
        ending=Ending(),
        texts=call_texts(run.conn, run.all),
        spans=list_prompt_spans(run.conn, run.trace.task_id),
        accounts=window_accounts(run.conn, run.all, {}),
        result_diff="",
    )


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LargeRun]:
    with large_run(tmp_path_factory.mktemp("report"), 80) as run:
        yield run


@pytest.fixture(scope="session")
def sources(large: LargeRun) -> RunSources:
    return sources_of(large)
