from clean_room_agent.artifacts.plans import (
    FORMAT_VERSION,
    AdjustmentVerdicts,
    FailureSignal,
    PartPlan,
    PlanVerdict,
    TargetFile,
)

STEP = {"id": "s1", "description": "Split evenly", "target_files": [{"path": "till/money.py"}]}


def test_a_plan_read_from_what_was_written_is_the_same() -> None:
    plan = PartPlan.model_validate({"part_id": "p1", "task_summary": "x", "steps": [STEP]})
    assert PartPlan.model_validate_json(plan.model_dump_json()) == plan
    assert plan.version == FORMAT_VERSION
    assert plan.steps[0].target_files == (TargetFile(path="till/money.py", role="modify"),)


def test_verdicts_read_from_what_was_written_are_the_same() -> None:
    judged = PlanVerdict(
        question="same_step", item="c1 c2", yes=True, reason="both", call_id=7, confidence=0.75
    )
    by_rule = PlanVerdict(question="same_step", item="c1 c3", yes=False, reason="other files")
    made = AdjustmentVerdicts(invalid=("s2",), verdicts=(judged, by_rule))
    assert AdjustmentVerdicts.model_validate_json(made.model_dump_json()) == made


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
