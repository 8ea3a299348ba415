from typing import Any

import msgspec
import pytest
from testing.client.model_client import models_config

from clean_room_agent.errors import ConfigError
from clean_room_agent.llm.model_config import BudgetConfig
from clean_room_agent.llm.router import ModelRouter, Window

SMALL = {"context_window": 2048, "reserved_tokens": 512}


def router(budget: dict[str, Any] | None = None, **models: Any) -> ModelRouter:
    fields = {"context_window": 8192, "reserved_tokens": 2048} | (budget or {})
    return ModelRouter(models_config(**models), msgspec.convert(fields, BudgetConfig))


def test_an_override_of_the_prompt_wins_over_its_stage_and_its_role() -> None:
    found = router(overrides={"scope_judgment": "scope-v1", "scope": "stage-v1"})
    assert found.resolve("classifier", "scope_judgment", "scope").tag == "scope-v1"
    assert found.resolve("classifier", "scope_batch", "scope").tag == "stage-v1"
    assert found.resolve("classifier", "scope_batch").tag == "thinker:4b"


def test_the_classifier_is_the_reasoning_model_with_its_window_unless_named() -> None:
    assert router({"reasoning": SMALL}).window("classifier") == Window(context=2048, reserved=512)
    named = router({"reasoning": SMALL}, classifier="tiny:1b")
    assert named.resolve("classifier", "p").tag == "tiny:1b"
    assert named.window("classifier") == Window(context=8192, reserved=2048)


def test_one_model_with_two_windows_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"coder:3b .* two windows: 2048 .* role coding, 8192 .* role reasoning"
    ) as caught:
        router({"coding": SMALL}, reasoning="coder:3b")
    assert "load the model again" in caught.value.hint


def test_an_override_that_gives_a_model_a_second_window_is_refused() -> None:
    found = router({"coding": SMALL}, overrides={"meta_plan": "coder:3b"})
    with pytest.raises(ConfigError, match="two windows"):
        found.resolve("reasoning", "meta_plan")
    with pytest.raises(ConfigError, match="two windows"):
        found.check([("meta_plan", "reasoning")], [])


def test_an_override_of_nothing_is_refused() -> None:
    found = router(overrides={"scope_judgement": "x"})
    with pytest.raises(ConfigError, match="scope_judgement: there is no prompt or stage") as caught:
        found.check([("scope_judgment", "classifier")], ["precision"])
    assert "precision, scope_judgment" in caught.value.hint
