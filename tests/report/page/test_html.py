"""Diffs as markup."""

from tests.report.conftest import Solved

from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.db.raw.analysis import RunCost
from clean_room_agent.report.page.html import MOST_DAYS, diff_files, run_page, runs_page
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


def test_every_text_of_the_page_was_made_safe(solved: Solved) -> None:
    page = run_page(solved.conn, solved.trace, "cents", lambda text: text.replace("cents", "[hidden]"))
    assert list(page.texts) == [call.id for call in solved.trace.calls] == [use.call.id for use in page.uses]
    assert [row.kind for row in page.tests] == ["baseline", "final"]
    assert page.result == "[hidden]"
    assert not any("cents" in text.call.request.prompt for text in page.texts.values())


DIFF = "diff --git a/x y.py b/x y.py\n--- a/x y.py\n+++ b/x y.py\n@@ -1 +1 @@\n-a < b\n+<script>\n"


def test_a_diff_is_coloured_file_by_file_and_its_code_is_text() -> None:
    (one, other) = diff_files(DIFF + DIFF.replace("x y", "z"))
    assert (one[0], other[0]) == ("x y.py", "z.py")
    assert '<span class="gd">-a &lt; b' in one[1]
    assert "<script>" not in one[1]
    assert diff_files("") == []
