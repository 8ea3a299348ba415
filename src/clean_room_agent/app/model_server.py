"""Opens the configured model server by its protocol, with the API key from the environment. Also makes it load the
model of a run's first question while the run does what needs no model.
"""

import contextlib
import os
import threading
from collections.abc import Iterator

from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.prompts import role_of
from clean_room_agent.artifacts.context import Role
from clean_room_agent.artifacts.outcomes import TimeKind
from clean_room_agent.errors import ConfigError, ForwardingServer, ModelError, ServerBusy
from clean_room_agent.llm.model_config import NO_SERVERS, ROLES, ModelsConfig
from clean_room_agent.llm.probes import small_window_error
from clean_room_agent.llm.router import ModelConfig, ModelRouter
from clean_room_agent.llm.transport import (
    ChatRequest,
    ModelDetails,
    ModelLoad,
    ModelServer,
    RawAnswer,
    ServedModel,
)
from clean_room_agent.llm.transports import ollama, openai
from clean_room_agent.orchestrator.spending import TimeLog

RECORDED_MODELS = {"coding": "recorded-coder", "reasoning": "recorded-reasoner"}
"""The model names of the demo's project, which no server has."""


def open_server(models: ModelsConfig) -> ModelServer:
    """The configured server, which can also be asked about its models; nothing is sent yet.

    Raises:
        ConfigError: the variable that the configuration names for the key is not set, or the models are the demo's recording.
    """
    if set(models.tags()) & set(RECORDED_MODELS.values()):
        raise ConfigError(
            "the models of this project are the recording of `cra demo`, which has answers only for the demo's own run",
            hint="what needs no model works here: show, report, replay, apply, runs, stats, retrieve --no-model; "
            "to ask a model of yours: cra init --force",
        )

    if models.servers != NO_SERVERS:
        return ServerOfEachModel(models)
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


class ServerOfEachModel:
    """The servers of the roles as one: each model is asked at that of its role, an override at that of its prompt's role."""

    live = True

    def __init__(self, models: ModelsConfig) -> None:
        roles = {models.server_of(role): role for role in ROLES}
        opened = {own: open_server(models.for_role(role)) for own, role in roles.items()}
        self._all = tuple(opened.values())
        self._of_role = {role: opened[models.server_of(role)] for role in ROLES}
        self._of_model = {
            tag: self._of_role[role]
            for tag, role in (*_models_in_overrides(models), *_roles_of_models(models))
        }
        self.provider = models.provider

    def send(self, request: ChatRequest) -> RawAnswer:
        """The outcome of one request."""
        return self._server_for(request.model.tag, request.model.role).send(request)

    def window(self, tag: str) -> int | None:
        """The window that its server gives the model."""
        return self._server_for(tag).window(tag)

    def count(self, tag: str, system: str, prompt: str) -> int | None:
        """The tokens of a request, as the model's server counts them."""
        return self._server_for(tag).count(tag, system, prompt)

    def digest(self, tag: str) -> str | None:
        """The digest of the model's files."""
        return self._server_for(tag).digest(tag)

    def version(self) -> str:
        """What each of them is.

        Raises:
            ModelError: one cannot be asked.
        """
        return ", ".join(server.version() for server in self._all)

    def list_models(self) -> tuple[ServedModel, ...]:
        """What the servers have together, by tag.

        Raises:
            ModelError: one cannot be asked.
        """
        found = {model.tag: model for server in self._all for model in server.list_models()}
        return tuple(found[tag] for tag in sorted(found))

    def slots(self, tag: str) -> int | None:
        """How many requests its server answers at a time for the model."""
        return self._server_for(tag).slots(tag)

    def loading(self, model: ModelConfig) -> ModelLoad | None:
        """A request to load the model."""
        return self._server_for(model.tag, model.role).loading(model)

    def show(self, tag: str) -> ModelDetails:
        """One model.

        Raises:
            ModelError: its server does not have it, or cannot be asked.
        """
        return self._server_for(tag).show(tag)

    def _server_for(self, tag: str, role: Role = "reasoning") -> ModelServer:
        return self._of_model.get(tag) or self._of_role[role]


def _roles_of_models(models: ModelsConfig) -> Iterator[tuple[str, Role]]:
    for role in ROLES:
        for tag in (models.tag_of(role), *models.escalation.of(role)):
            yield tag, role


def _models_in_overrides(models: ModelsConfig) -> Iterator[tuple[str, Role]]:
    """The models of overrides, each with the role of its prompt; a stage only judges."""
    for name, tag in sorted(models.overrides.items()):
        yield tag, role_of(name) or "classifier"


def model_on(server: ModelServer, tag: str, models: ModelsConfig) -> ModelDetails:
    """What the server reports about the model.

    Raises:
        ModelNotFound: the server does not have it.
        ForwardingServer: it would forward prompts to another machine, which the configuration does not allow.
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
    """Check that the server has every configured model and gives it the configured window. No model is asked, so it
    takes milliseconds; of a server that is busy, the first question finds this out, since it waits.

    Raises:
        ModelNotFound: it lacks one.
        WindowExceeded: it gives one a smaller window.
        ForwardingServer: it would forward prompts to another machine, which the configuration does not allow.
        ModelError: it cannot be asked.
    """
    with contextlib.suppress(ServerBusy):
        for tag in router.tags():
            served, window = model_on(server, tag, router.models).served, router.window_of(tag)
            if served is not None and window is not None and served < window:
                raise small_window_error(served, tag, window)


def connect(config: ModelsConfig, *, key: str = "") -> ModelServer:
    """A transport to `[models].base_url`; nothing is sent yet. `key` is for servers that need one."""
    if config.provider == "openai":
        return openai.connect(config, key=key)
    return ollama.connect(config)


@contextlib.contextmanager
def loading(models: ModelsConfig, model: ModelConfig | None, times: TimeLog) -> Iterator[None]:
    """Have the server load the model during the block, if it loads models on demand; at the end of the block an
    unfinished load is cancelled. If the server cannot load it, the first question fails; here, that is only noted with
    the time it took.
    """
    load = open_server(models).loading(model) if model is not None else None
    if model is None or load is None:
        yield
        return
    thread = threading.Thread(target=_load_model, args=(load, model.tag, times), name="loading", daemon=True)
    thread.start()
    try:
        yield
    finally:
        load.cancel()
        thread.join()


def first_model(router: ModelRouter, *, planned: bool) -> ModelConfig:
    """The model of a run's first question: what the task is about or, if a plan says that, what has to be shown."""
    if planned:
        return router.resolve("classifier", "scope_judgment", "scope")
    return router.resolve("reasoning", "task_analysis", "task_analysis")


def _load_model(load: ModelLoad, tag: str, times: TimeLog) -> None:
    began, said = utc_now(), tag
    try:
        load.run()
    except ModelError as error:
        said = f"{tag}: {error.message}"
    times.add(TimeKind.MODEL_LOAD, said, began_at=began)
