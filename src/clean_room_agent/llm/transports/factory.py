"""The transport to the configured server, by the protocol that it speaks."""

from clean_room_agent.llm.config import ModelsConfig
from clean_room_agent.llm.transport import ModelServer
from clean_room_agent.llm.transports import ollama, openai


def connect(config: ModelsConfig, *, key: str = "") -> ModelServer:
    """A transport to `[models].base_url`; nothing is sent yet. `key` is for servers that want one."""
    if config.provider == "openai":
        return openai.connect(config, key=key)
    return ollama.connect(config)
