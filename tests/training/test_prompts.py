import pytest

from clean_room_agent.llm.answers import Choice
from clean_room_agent.retrieval.stage import SingleInputs
from clean_room_agent.training.prompts import (
    CURATE_DATA,
    TARGET_JUDGMENT,
    TRAIN_PLAN,
    TrainPlanAnswer,
    TrainPlanInputs,
)

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


def test_whether_a_prompt_is_worth_an_adapter_is_answered_by_one_word() -> None:
    inputs = SingleInputs(question="## Task\nMend it", option="asked about: a.py", others=("implement",))
    text = TARGET_JUDGMENT.render(inputs)
    assert text.index("Mend it") < text.index("asked about: a.py")
    value = TARGET_JUDGMENT.parse("No.")
    assert isinstance(value, Choice)
    assert value.word == "no"


def test_whether_an_answer_is_a_good_example_is_answered_by_one_word() -> None:
    inputs = SingleInputs(question="## Task\nMend it", option="asked about: a.py", others=())
    text = CURATE_DATA.render(inputs)
    assert text.index("Mend it") < text.index("asked about: a.py")
    value = CURATE_DATA.parse("No.")
    assert isinstance(value, Choice)
    assert value.word == "no"
