from typing import Any

from msgspec.structs import replace
from rich.console import Console

from clean_room_agent.db.raw.analysis import CallSums
from clean_room_agent.report.stats import render_stats
from clean_room_agent.training.credit import STAGES, Charge, Headroom, Waterfall
from clean_room_agent.training.logs import PromptStats


def sums(**changes: Any) -> CallSums:
    values: dict[str, Any] = dict.fromkeys(CallSums.__struct_fields__, 0) | {
        "prompt": "implement",
        "model": "coder:3b",
    }
    return CallSums(**values | changes)


def waterfall(*, solved: int) -> Waterfall:
    return Waterfall(
        tasks=3,
        solved=solved,
        unproven=0,
        charges=tuple(
            Charge(task_id=f"t{number}", stage="scope", prompt="scope_judgment", call_ids=(number,))
            for number in range(3 - solved)
        ),
        unattributed={},
        headroom={stage: Headroom(at_most=1, expected=0.5) for stage in STAGES},
        required_recall=0.75,
        context_recall=None,
    )


def shown(stats: PromptStats, found: Waterfall, *, counterfactual: bool = False, width: int = 120) -> str:
    console = Console(width=width)
    with console.capture() as told:
        console.print(render_stats([stats], found, counterfactual=counterfactual))
    return told.get()


def test_failed_tasks_are_told_by_the_stage_that_lost_them() -> None:
    stats = PromptStats(sums=sums(), agreement=None)
    told = shown(stats, waterfall(solved=1), counterfactual=True)
    assert "3 tasks, 1 solved, 2 not" in told
    assert "it was found, but judged irrelevant" in told
    assert "won if perfect: 0.5 expected, at most 1" in told
    assert "files to change that came into scope: 75%" in told
    assert "nothing to win" in shown(stats, waterfall(solved=3), counterfactual=True)
    told = shown(stats, waterfall(solved=1))
    assert "    2  scope" in told
    assert "retrieval" not in told, "nothing was lost there"
    assert "lost at" not in shown(stats, replace(waterfall(solved=1), charges=()))


def test_nothing_is_cut_at_80_columns() -> None:
    told = shown(
        PromptStats(
            sums=sums(
                calls=12,
                prompt_tokens=1_234_567,
                completion_tokens=123_456,
                told_tokens=200,
                cached_tokens=186,
            ),
            agreement=None,
        ),
        waterfall(solved=1),
        counterfactual=True,
        width=80,
    )
    assert "it was found, but judged irrelevant" in " ".join(told.split())
    assert not [line for line in told.splitlines() if line.startswith(",") or "…" in line]


def test_a_prompt_that_writes_code_has_what_its_answers_came_to() -> None:
    told = shown(PromptStats(sums=sums(tried=8, applied=6, passed=1), agreement=None), waterfall(solved=1))
    assert "implement, coder:3b; 8 tried: 75% applied, 1 passed" in told
