"""Training plans: in files, in rows, and what they need to be seen."""

from pathlib import Path

import pytest

from clean_room_agent.errors import ArtifactError
from clean_room_agent.training.plan import (
    FORMAT_VERSION,
    TrainingPlan,
    examples_to_see,
    plan_of,
    read_plan,
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


def test_small_gains_need_many_examples() -> None:
    assert examples_to_see(0.5, 0.5) == 0
    assert examples_to_see(0.5, 0.6) > examples_to_see(0.5, 0.7) > 0
    assert examples_to_see(0.5, 0.6) == 388
