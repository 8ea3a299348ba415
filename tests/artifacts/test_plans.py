import json

import pytest
from pydantic import ValidationError

from clean_room_agent.artifacts.plans import (
    FORMAT_VERSION,
    AdjustmentVerdicts,
    FailureSignal,
    MetaPlan,
    PartPlan,
    PlanStep,
    PlanVerdict,
    PlanVerdicts,
    TargetFile,
)

STEP = {"id": "s1", "description": "Split evenly", "target_files": [{"path": "till/money.py"}]}


def test_a_plan_read_from_what_was_written_is_the_same() -> None:
    plan = PartPlan.model_validate({"part_id": "p1", "task_summary": "x", "steps": [STEP]})
    assert PartPlan.model_validate_json(plan.model_dump_json()) == plan
    assert plan.version == FORMAT_VERSION
    assert plan.steps[0].target_files == (TargetFile(path="till/money.py", role="modify"),)


def test_a_field_of_a_later_version_is_kept() -> None:
    step = PlanStep.model_validate(STEP | {"estimate": "small"})
    assert json.loads(step.model_dump_json())["estimate"] == "small"


@pytest.mark.parametrize("missing", sorted(STEP))
def test_a_missing_field_is_named(missing: str) -> None:
    with pytest.raises(ValidationError, match=missing):
        PlanStep.model_validate({name: value for name, value in STEP.items() if name != missing})


def test_a_role_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValidationError, match="role"):
        TargetFile.model_validate({"path": "a.py", "role": "rename"})


def test_a_plan_cannot_be_changed() -> None:
    plan = MetaPlan(task_summary="x", parts=())
    with pytest.raises(ValidationError, match="frozen"):
        plan.task_summary = "y"


def test_verdicts_read_from_what_was_written_are_the_same() -> None:
    judged = PlanVerdict(
        question="same_step", item="c1 c2", yes=True, reason="both", call_id=7, confidence=0.75
    )
    by_rule = PlanVerdict(question="same_step", item="c1 c3", yes=False, reason="other files")
    plan = PlanVerdicts(items=(("c1", "Split evenly"),), verdicts=(judged, by_rule))
    assert PlanVerdicts.model_validate_json(plan.model_dump_json()) == plan


def test_a_verdict_by_rule_has_no_call_and_no_probabilities() -> None:
    by_rule = PlanVerdict(question="same_step", item="c1 c3", yes=False, reason="other files")
    assert (by_rule.call_id, by_rule.probability, by_rule.calibrated, by_rule.readable) == (
        None,
        None,
        None,
        True,
    )


def test_an_older_adjustment_without_later_fields_is_read() -> None:
    signal = FailureSignal(category="test_failure", message="3 != 4", source="test_a")
    old = {"failures": [signal.model_dump()], "invalid": ["s2"]}
    read = AdjustmentVerdicts.model_validate(old)
    assert (read.failures, read.invalid, read.new_step_for) == ((signal,), ("s2",), ())
