"""All runs: the figures of the page."""

from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.db.raw.analysis import RunCost
from clean_room_agent.report.page.runs_page import MOST_DAYS, runs_page
from clean_room_agent.training.credit import Waterfall, waterfall_of

NOTHING: Waterfall = waterfall_of(())


def cost(number: int, status: RunStatus, *, model: str = "coder:3b") -> RunCost:
    day = f"2026-{1 + number // 28:02d}-{1 + number % 28:02d}"
    return RunCost(
        task_id=f"{number:08d}",
        status=status,
        description="Fix it.",
        timestamp=f"{day}T10:00:00Z",
        completed_at=None if status is RunStatus.RUNNING else f"{day}T10:01:00Z",
        model=model,
        calls=2,
        tokens=100,
        model_ms=1_000,
    )


def test_runs_are_counted_by_day_and_model_by_how_they_ended() -> None:
    costs = (
        cost(0, RunStatus.COMPLETE),
        cost(0, RunStatus.NEEDS_HUMAN),
        cost(0, RunStatus.UNPROVEN),
        cost(1, RunStatus.FAILED, model=""),
        cost(2, RunStatus.RUNNING),
    )
    page = runs_page(costs, NOTHING)
    assert [(row.name, row.complete, row.unproven, row.partial, row.failed) for row in page.periods] == [
        ("2026-01-01", 1, 1, 1, 0),
        ("2026-01-02", 0, 0, 0, 1),
        ("2026-01-03", 0, 0, 0, 0),
    ]
    assert [(row.name, row.runs) for row in page.models] == [("coder:3b", 4), ("not recorded", 1)]
    assert (page.total.runs, page.total.tokens, page.total.seconds) == (5, 500, 240.0)
    assert [row.task_id for row, _ in page.runs] == ["00000002", "00000001", *["00000000"] * 3]


def test_many_days_become_months() -> None:
    page = runs_page([cost(number, RunStatus.COMPLETE) for number in range(MOST_DAYS + 1)], NOTHING)
    assert [row.name for row in page.periods] == ["2026-01", "2026-02", "2026-03"]
