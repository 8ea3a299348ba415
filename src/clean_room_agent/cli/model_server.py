"""The configured model server, with the key that the environment holds for it."""

import os

from clean_room_agent.errors import ConfigError
from clean_room_agent.llm.config import ModelsConfig
from clean_room_agent.llm.exchange import ModelServer


def open_server(models: ModelsConfig) -> ModelServer:
    """The server of the configuration, which can be asked about its models too; nothing is sent yet.

    Raises:
        ConfigError: the variable that the configuration names for the key is not set.
    """
    from clean_room_agent.llm.transports.servers import connect

    name = models.api_key_env
    if name is None:
        return connect(models)
    key = os.environ.get(name, "")
    if not key:
        raise ConfigError(
            f"[models] api_key_env: there is no environment variable {name}",
            hint=f"set {name} to the server's key, or take api_key_env out of [models] where it wants none",
        )
    return connect(models, key=key)
