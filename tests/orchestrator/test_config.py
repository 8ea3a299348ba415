from typing import get_args

import pytest
from pydantic import ValidationError

from clean_room_agent.orchestrator.config import OrchestratorConfig, RecoveryConfig, Rule, SolveConfig
from clean_room_agent.orchestrator.recovery.rules import TABLE


def test_every_recovery_rule_can_be_switched_off_and_none_is_by_default() -> None:
    assert RecoveryConfig().rules == get_args(Rule) == tuple(name for name, _ in TABLE)
    assert RecoveryConfig(rules=()).rules == ()


def test_a_rule_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValidationError, match="rules"):
        RecoveryConfig.model_validate({"rules": ["retyr"]})


def test_how_often_a_step_is_tried_has_no_default() -> None:
    with pytest.raises(ValidationError) as caught:
        SolveConfig.model_validate({})
    assert {error["loc"] for error in caught.value.errors()} == {("max_attempts",), ("max_refinement_loops",)}


@pytest.mark.parametrize("key", ["max_parts", "max_steps_per_part", "max_calls", "max_tokens"])
def test_a_run_without_a_single_part_step_or_call_is_no_run(key: str) -> None:
    with pytest.raises(ValidationError, match=key):
        OrchestratorConfig.model_validate({key: 0})
