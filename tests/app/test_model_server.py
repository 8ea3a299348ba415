"""The configured server, and its key."""

from typing import Any

import pytest

from clean_room_agent.app.model_server import RECORDED_MODELS, open_server
from clean_room_agent.errors import ConfigError
from clean_room_agent.llm.config import ModelsConfig

MODELS: dict[str, Any] = {
    "base_url": "http://127.0.0.1:1",
    "coding": "a",
    "reasoning": "b",
    "provider": "openai",
}


def test_a_key_that_is_not_set_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(ConfigError) as caught:
        open_server(ModelsConfig(**MODELS, api_key_env="MY_KEY"))
    assert "MY_KEY" in caught.value.message + caught.value.hint


def test_the_demo_s_recording_is_no_server() -> None:
    with pytest.raises(ConfigError, match="recording"):
        open_server(ModelsConfig(**MODELS | RECORDED_MODELS))
