from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from clean_room_agent.artifacts.context import Judgment, Subject
from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw.passes import DecisionRow, list_decisions
from clean_room_agent.db.raw.record import Record
from clean_room_agent.retrieval.stage import (
    Decision,
    DecisionLog,
    Verdict,
)

PASS = "11111111-2222-4333-8444-555555555555:meta_plan"
JUDGMENT = Judgment(confidence=0.75, probability=0.75, neutral=0.5, calibrated=1.5)
DECISION = Decision(
    stage="scope",
    subject=Subject(path="a.py", symbol="f", file_id=7, tier=2, score=0.5),
    included=True,
    detail="primary",
    reason="judged change",
    verdict=Verdict(
        label="change",
        reason="judged change",
        judgment=JUDGMENT,
    ),
)
Read = Callable[[], tuple[DecisionRow, ...]]


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    opened = Record.open(tmp_path, clock=lambda: "2026-01-01T00:00:00Z")
    yield opened
    opened.close()


@pytest.fixture
def rows(record: Record, tmp_path: Path) -> Iterator[Read]:
    conn = connect_file("raw", tmp_path / ".clean_room" / "raw.sqlite", read_only=True)
    yield lambda: list_decisions(conn, PASS)
    conn.close()


def test_a_decision_is_a_row_with_its_subject_and_its_verdict(record: Record, rows: Read) -> None:
    DecisionLog(record).write(PASS, [DECISION])
    (row,) = rows()
    assert (row.task_id, row.stage, row.timestamp) == (PASS, "scope", "2026-01-01T00:00:00Z")
    assert (row.subject, row.judgment) == (DECISION.subject, JUDGMENT)
    assert (row.included, row.detail, row.reason) == (True, "primary", "judged change")


def test_what_was_posted_is_committed_before_what_is_written(record: Record, rows: Read) -> None:
    log = DecisionLog(record)
    log.post(PASS, [DECISION])
    log.write(PASS, [replace(DECISION, stage="assembly")])
    assert [row.stage for row in rows()] == ["scope", "assembly"]


def test_a_pass_done_again_writes_only_what_an_earlier_try_did_not(record: Record, rows: Read) -> None:
    DecisionLog(record).write(PASS, [DECISION])
    again = DecisionLog(record)
    again.post(PASS, [DECISION])
    again.write(PASS, [replace(DECISION, stage="assembly")])
    assert [row.stage for row in rows()] == ["scope", "assembly"]
