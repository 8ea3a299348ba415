"""What a run does is timed, whatever comes of it."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from clean_room_agent.artifacts.outcomes import TimeKind
from clean_room_agent.db.raw.runs import TimeSpanRow
from clean_room_agent.orchestrator.run_config import OrchestratorConfig
from clean_room_agent.orchestrator.spending import Budget, Meter, TimeLog


def test_calls_from_many_threads_are_all_counted() -> None:
    meter = Meter()
    with ThreadPoolExecutor(4) as pool:
        for _ in range(100):
            pool.submit(meter.add, prompt_tokens=3, completion_tokens=1, latency_ms=2, window=10)
    spent = meter.read()
    assert (spent.calls, spent.tokens, spent.latency_ms) == (100, 400, 200)


def test_the_fullest_prompt_is_by_share_of_its_window_and_taken_once() -> None:
    meter = Meter()
    meter.add(prompt_tokens=50, completion_tokens=0, latency_ms=0, window=100)
    meter.add(prompt_tokens=90, completion_tokens=0, latency_ms=0, window=1000)
    meter.add(prompt_tokens=0, completion_tokens=0, latency_ms=0, window=0)
    assert meter.take_fullest() == (50, 100)
    assert meter.take_fullest() == (0, 0)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"max_calls": 1}, "1 model call (max_calls = 1)"),
        ({"max_tokens": 500}, "500 tokens (max_tokens = 500)"),
        ({"max_minutes": 2}, "2 minutes (max_minutes = 2)"),
        ({"max_calls": 2, "max_tokens": 501, "max_minutes": 2.1}, ""),
    ],
)
def test_a_budget_that_is_spent_names_its_bound(limits: dict[str, float], said: str) -> None:
    meter = Meter()
    seconds = iter([0.0, 100.0])
    budget = Budget(
        msgspec.convert(limits, OrchestratorConfig), meter, lambda: next(seconds), used_before=20.0
    )
    meter.add(prompt_tokens=400, completion_tokens=100, latency_ms=1, window=1000)
    assert budget.spent() == said


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
