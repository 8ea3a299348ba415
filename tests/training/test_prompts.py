"""The prompt that plans a training."""

import pytest

from clean_room_agent.training.prompts.train_plan import TRAIN_PLAN, TrainPlanAnswer, TrainPlanInputs

INPUTS = TrainPlanInputs(
    candidates="scope_batch: 210 failed",
    names=("scope_batch", "implement"),
    tasks=300,
    rejected="",
    faults=(),
)


def test_only_candidates_can_be_chosen() -> None:
    assert TRAIN_PLAN.narrow is not None
    schema = TRAIN_PLAN.narrow(TRAIN_PLAN.schema or {}, INPUTS)
    assert schema["properties"]["target"] == {"type": "string", "enum": ["scope_batch", "implement"]}


def test_a_refused_plan_is_shown_with_its_faults() -> None:
    assert "refused" not in TRAIN_PLAN.render(INPUTS)
    again = TrainPlanInputs(
        candidates=INPUTS.candidates,
        names=INPUTS.names,
        tasks=300,
        rejected='{"target": "x"}',
        faults=("no x",),
    )
    text = TRAIN_PLAN.render(again)
    assert '{"target": "x"}' in text
    assert "- no x" in text
    assert "300 tasks" in text


@pytest.mark.parametrize(("field", "value"), [("expected", 1.5), ("epochs", 0)])
def test_an_answer_out_of_bounds_is_refused(field: str, value: float) -> None:
    answer = {"reason": "r", "target": "scope_batch", "expected": 0.5, "epochs": 2, field: value}
    with pytest.raises(ValueError, match=field):
        TrainPlanAnswer.model_validate(answer)
