import pytest

from clean_room_agent.errors import ConfigError
from clean_room_agent.retrieval.config import JudgmentsConfig, StagesConfig
from clean_room_agent.retrieval.registry import STAGES, build_stages


@pytest.mark.parametrize("name", sorted(STAGES))
def test_a_stage_has_the_name_that_it_is_registered_under(name: str) -> None:
    assert STAGES[name](JudgmentsConfig()).name == name


def test_the_callers_order_counts() -> None:
    stages = build_stages(("precision", "scope"), JudgmentsConfig())
    assert [stage.name for stage in stages] == ["precision", "scope"]


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'scope'"):
        build_stages(("scop",), JudgmentsConfig())


def test_the_default_stages_exist() -> None:
    assert build_stages(StagesConfig().names(), JudgmentsConfig())
