"""Training plans in files and rows, and which prompts are worth one."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from clean_room_agent.errors import ArtifactError
from clean_room_agent.training.credit import STAGES, Charge, Headroom, Waterfall
from clean_room_agent.training.train_plan import (
    FORMAT_VERSION,
    TrainingPlan,
    plan_of,
    read_plan,
    refusal,
    row_of,
)

PLAN = TrainingPlan(target="scope_batch", base_model="small:1b", task_id="task")


def test_a_plan_comes_back_from_its_file_and_from_its_row(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(PLAN.model_dump_json())
    assert read_plan(tmp_path / "plan.json") == PLAN
    assert plan_of(row_of(PLAN, task_id="task", raw="", now="2026-01-02T03:04:05Z")) == PLAN


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not a training plan"),
        ('{"base_model": "b"}', "target: Field required"),
        ('{"target": "t", "base_model": "b", "hyperparameters": {"rank": 0}}', "hyperparameters.rank"),
        (f'{{"target": "t", "base_model": "b", "version": {FORMAT_VERSION + 1}}}', "newer program"),
    ],
)
def test_what_is_wrong_is_named_by_its_field(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(ArtifactError, match=words):
        read_plan(tmp_path / "plan.json")


def waterfall(lost: int) -> Waterfall:
    one = Charge(task_id="t", stage="retrieval", prompt="", call_ids=())
    other = replace(one, stage="scope", prompt="scope_judgment")
    return Waterfall(
        tasks=lost + 201,
        solved=0,
        unproven=0,
        charges=(one,) * lost + (other,) * 201,
        unattributed={},
        required_recall=None,
        context_recall=None,
        headroom={stage: Headroom(at_most=1, expected=1.0) for stage in STAGES},
    )


def test_nothing_is_trained_where_too_few_failed_or_retrieval_loses_as_much() -> None:
    assert refusal(waterfall(200), "scope_judgment") == ""
    assert "200 are missing" in refusal(waterfall(200), "implement")
    nothing = replace(waterfall(0), headroom=dict.fromkeys(STAGES, Headroom(at_most=0, expected=0.0)))
    assert "would win none" in refusal(nothing, "scope_judgment")
    assert "retrieval loses 201 tasks and this prompt 201" in refusal(waterfall(201), "scope_judgment")
