import pytest
from testing.client.model_client import models_config

from clean_room_agent.llm.config import Provider
from clean_room_agent.llm.transports.factory import connect


@pytest.mark.parametrize("provider", ["ollama", "openai"])
def test_a_server_is_spoken_to_by_the_configured_protocol(provider: Provider) -> None:
    assert connect(models_config("http://127.0.0.1:1", provider=provider)).provider == provider
