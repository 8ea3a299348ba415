"""Opens the configured model server, with the API key from the environment."""

import os

from clean_room_agent.errors import ConfigError, ForwardingServer
from clean_room_agent.llm.config import ModelsConfig
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.llm.transport import ModelDetails, ModelServer
from clean_room_agent.llm.window_probe import small_window_error

RECORDED_MODELS = {"coding": "recorded-coder", "reasoning": "recorded-reasoner"}
"""What the project of `cra demo` names: no server has them."""


def open_server(models: ModelsConfig) -> ModelServer:
    """The server of the configuration, which can be asked about its models too; nothing is sent yet.

    Raises:
        ConfigError: the variable that the configuration names for the key is not set, or the models are the demo's recording.
    """
    if set(models.tags()) & set(RECORDED_MODELS.values()):
        raise ConfigError(
            "the models of this project are the recording of `cra demo`, which has answers only for the demo's own run",
            hint="what needs no model works here: show, report, replay, apply, runs, stats, retrieve --no-model; "
            "to ask a model of yours: cra init --force",
        )
    from clean_room_agent.llm.transports.factory import connect

    name = models.api_key_env
    if name is None:
        return connect(models)
    key = os.environ.get(name, "")
    if not key:
        raise ConfigError(
            f"[models] api_key_env: there is no environment variable {name}",
            hint=f"set {name} to the server's key, or remove api_key_env from [models] if it needs none",
        )
    return connect(models, key=key)


def model_on(server: ModelServer, tag: str, models: ModelsConfig) -> ModelDetails:
    """What the server reports about the model.

    Raises:
        ModelNotFound: it does not have it.
        ForwardingServer: it would send prompts on to another machine, and the configuration does not allow that.
        ModelError: it cannot be asked.
    """
    details = server.show(tag)
    if details.forwards_to and not models.allow_remote:
        raise ForwardingServer(
            f"{tag}: its prompts are forwarded to {details.forwards_to}",
            hint="name a model in [models] that runs on this machine, or set allow_remote = true there",
        )
    return details


def require_all(server: ModelServer, router: ModelRouter) -> None:
    """The server has every model that the configuration names, and gives it the configured window. No model answers for this,
    so it takes milliseconds.

    Raises:
        ModelNotFound: it lacks one.
        WindowExceeded: it gives one a smaller window.
        ForwardingServer: it would send prompts on to another machine, and the configuration does not allow that.
        ModelError: it cannot be asked.
    """
    for tag in router.tags():
        served, window = model_on(server, tag, router.models).served, router.window_of(tag)
        if served is not None and window is not None and served < window:
            raise small_window_error(served, tag, window)
