"""The transport to the configured server, by the protocol that it speaks."""

from clean_room_agent.llm.config import ModelsConfig
from clean_room_agent.llm.transport import ModelServer


def connect(config: ModelsConfig, *, key: str = "") -> ModelServer:
    """A transport to `[models].base_url`; nothing is sent yet. `key` is for servers that need one."""
    if config.provider == "openai":
        from clean_room_agent.llm.transports import openai

        return openai.connect(config, key=key)
    from clean_room_agent.llm.transports import ollama

    return ollama.connect(config)
