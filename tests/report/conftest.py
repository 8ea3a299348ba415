"""The record of one real solve of the demo's sample project, read only."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct
from tests.report.scripted_solve import solved_sample

from clean_room_agent.db.connection import read_record
from clean_room_agent.db.raw.runs import find_task
from clean_room_agent.db.rows import Connection
from clean_room_agent.report.trace import RunTrace, read_trace


class Solved(Struct, frozen=True, kw_only=True):
    top: Path
    conn: Connection
    trace: RunTrace

    def call_id(self, call_type: str) -> int:
        """The first call of this prompt."""
        return next(call.id for call in self.trace.calls if call.site.call_type == call_type)


@pytest.fixture(scope="session")
def solved() -> Iterator[Solved]:
    top, run = solved_sample()
    with read_record(top) as conn:
        yield Solved(top=top, conn=conn, trace=read_trace(conn, find_task(conn, run)))
