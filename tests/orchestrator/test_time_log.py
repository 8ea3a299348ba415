"""What a run does is timed, whatever comes of it."""

import itertools

import pytest

from clean_room_agent.artifacts.outcomes import TimeKind
from clean_room_agent.db.raw.runs import TimeSpanRow
from clean_room_agent.orchestrator.time_log import TimeLog


@pytest.fixture
def times() -> TimeLog:
    seconds = itertools.count()
    return TimeLog("task", lambda: f"2026-03-04T05:06:{next(seconds):02}Z")


def test_what_ends_before_the_record_is_open_comes_first(times: TimeLog) -> None:
    rows: list[TimeSpanRow] = []
    times.add(TimeKind.START, began_at="2026-03-04T05:05:59Z")
    with times.timed(TimeKind.PREFLIGHT):
        pass
    with times.connected(rows.append), times.timed(TimeKind.GIT, "snapshot"):
        pass
    assert [(row.kind, row.detail, row.began_at[-3:-1], row.ended_at[-3:-1]) for row in rows] == [
        (TimeKind.START, "", "59", "00"),
        (TimeKind.PREFLIGHT, "", "01", "02"),
        (TimeKind.GIT, "snapshot", "03", "04"),
    ]


def test_what_fails_took_time_as_well(times: TimeLog) -> None:
    rows: list[TimeSpanRow] = []
    with times.connected(rows.append), pytest.raises(ValueError, match="no"), times.timed(TimeKind.TESTS):
        raise ValueError("no")
    assert [row.kind for row in rows] == [TimeKind.TESTS]


def test_what_ends_after_the_record_is_closed_is_dropped(times: TimeLog) -> None:
    rows: list[TimeSpanRow] = []
    with times.timed(TimeKind.INDEX), times.connected(rows.append):
        pass
    assert rows == []
