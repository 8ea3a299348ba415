"""The training stages by name."""

import pytest

from clean_room_agent.app.training_parts import stage_names
from clean_room_agent.training.pipeline import TRAINING_STAGES
from clean_room_agent.training.plan import DataCriteria
from clean_room_agent.training.stage_source import TrainingStageConfig


@pytest.mark.parametrize("name", TRAINING_STAGES)
def test_a_stage_has_the_name_that_it_is_listed_by(name: str) -> None:
    stage = TRAINING_STAGES[name](TrainingStageConfig(target="scope_judgment", criteria=DataCriteria()))
    assert stage.name == name
    assert stage_names(name, "") == (name,)
