"""The stages of the commands that read runs."""

import pytest

from clean_room_agent.app.training_parts import TARGETS, stage_names
from clean_room_agent.errors import ConfigError


def test_stages_are_given_or_the_default() -> None:
    assert stage_names(None, "log_analysis") == ("log_analysis",)
    assert stage_names("data_selection", "log_analysis") == ("data_selection",)


@pytest.mark.parametrize("given", ["scope", "", "log_analysis,none"])
def test_an_unknown_stage_is_refused_with_those_there_are(given: str) -> None:
    with pytest.raises(ConfigError) as caught:
        stage_names(given, "log_analysis")
    assert caught.value.hint == "stages: log_analysis, data_selection"


def test_prompts_about_training_are_no_targets() -> None:
    assert "implement" in TARGETS
    assert not {"train_plan", "curate_data", "target_judgment"} & {*TARGETS}
