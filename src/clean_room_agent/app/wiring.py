"""Builds the objects that a command needs from the configuration; `run_wiring.py` adds those of a run. Nothing else builds any."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.leftovers import task_lock
from clean_room_agent.app.model_records import (
    RecordedBiases,
    RecordedProofs,
    RecordSink,
    estimators_for,
)
from clean_room_agent.app.model_server import open_server, require_all
from clean_room_agent.app.prompts import BY_NAME
from clean_room_agent.app.resumption import resumable
from clean_room_agent.app.settings import Overrides, Settings, load_settings
from clean_room_agent.artifacts.context import Role
from clean_room_agent.artifacts.model_calls import CallWatcher, unwatched
from clean_room_agent.artifacts.names import short_id, task_of
from clean_room_agent.artifacts.outcomes import RunStatus, status_of
from clean_room_agent.db.connection import remove_database
from clean_room_agent.db.raw import calls
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.runs import OrchestratorRunRow
from clean_room_agent.db.rows import Connection
from clean_room_agent.db.session import Session, has_session, restore_session
from clean_room_agent.errors import UsageError, WindowExceeded
from clean_room_agent.folders import user_folder
from clean_room_agent.git.repository import find_top
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.llm.token_estimator import TokenEstimator
from clean_room_agent.llm.transport import ChatRequest, RawAnswer, Transport
from clean_room_agent.llm.transports.replay import resuming
from clean_room_agent.orchestrator.spending import Meter
from clean_room_agent.query.knowledge import KnowledgeBase
from clean_room_agent.retrieval.retrieval_config import RetrievalConfig, StagesConfig
from clean_room_agent.retrieval.retriever import STAGES, Retriever, stages_named
from clean_room_agent.workspace import CACHE_HINT, Workspace, private_folder, trusted_workspace

PLAIN_WINDOW = 32_768
"""Tokens of the window that is assumed if no model is used and none is configured."""
RESERVED_SHARE = 4
"""One part in so many of such a window is reserved."""


def workspace_of(path: Path) -> Workspace:
    """The workspace of the repository around `path`.

    Raises:
        UsageError: its folder is not the user's own.
    """
    return trusted_workspace(find_top(path.absolute()))


def cache_folder() -> Path:
    """The user's cache folder for this program."""
    return user_folder("XDG_CACHE_HOME", ".cache") / "cra"


def worktrees_folder(workspace: Workspace, settings: Settings) -> Path:
    """The folder of the repository's worktrees."""
    root = settings.worktree.root
    return workspace.repo / root if root is not None else workspace.worktrees(cache_folder())


def worktree_place(workspace: Workspace, settings: Settings, task_id: str) -> Path:
    """The path of a run's first worktree; its parent folder is created."""
    return private_folder(worktrees_folder(workspace, settings), hint=CACHE_HINT) / short_id(task_id)


def live_transport(settings: Settings) -> Transport:
    """A transport to the configured model server; nothing is sent yet."""
    return open_server(settings.models)


def require_models(settings: Settings, transport: Callable[[Settings], Transport]) -> None:
    """Check that the server has every configured model, with its window, before anything that takes long. A recording
    is not checked.

    Raises:
        ConfigError: the configuration names an unknown stage.
        ModelError: it does not, or cannot be asked.
    """
    retrieval_config(settings)
    if transport is live_transport:
        require_all(open_server(settings.models), router_of(settings))


class NoTransport(Transport):
    """The transport of a command that promises to ask no model."""

    provider = "none"
    live = False

    def send(self, request: ChatRequest) -> RawAnswer:
        """Refuse, since nothing may be asked.

        Raises:
            UsageError: always.
        """
        raise UsageError(f"--no-model was given, but {request.identity} needs a model")


def no_transport(_settings: Settings) -> Transport:
    """For commands that work without a model."""
    return NoTransport()


def without_models(settings: Settings) -> Settings:
    """The settings with models that are never asked, for a command that works without any."""
    models = {"base_url": "http://127.0.0.1:1", "coding": "none", "reasoning": "none"}
    return Settings(source=settings.source, data={**settings.data, "models": models})


def with_plain_budget(settings: Settings, warn: Callable[[str], None]) -> Settings:
    """The settings with a default window and reserve; `warn` is called with what is assumed."""
    given: Mapping[str, Any] = settings.data.get("budget", {})
    window = given.get("context_window", PLAIN_WINDOW)
    reserved = given.get("reserved_tokens", window // RESERVED_SHARE)
    assumed = {"context_window": window, "reserved_tokens": reserved}
    flags = [f"--{key.replace('_', '-')} {assumed[key]}" for key in assumed if key not in given]
    if flags:
        warn(f"no window is configured; assumed: {' '.join(flags)}")
    return Settings(source=settings.source, data={**settings.data, "budget": {**given, **assumed}})


def offline_settings(workspace: Workspace, overrides: Overrides, warn: Callable[[str], None]) -> Settings:
    """The settings of a command that asks no model: those of the repository, or defaults if it has none."""
    settings = load_settings(workspace.config, overrides, optional=True)
    if "models" not in settings.data:
        settings = with_plain_budget(without_models(settings), warn)
    settings.require("models", "budget", "stages")
    return settings


def router_of(settings: Settings, learned: Mapping[str, TokenEstimator] | None = None) -> ModelRouter:
    """The router for the configuration, with its overrides checked against the existing prompts and stages."""
    router = ModelRouter(settings.models, settings.budget, learned)
    if settings.models.overrides:
        router.check(((prompt.name, prompt.role) for prompt in BY_NAME.values()), STAGES)
    return router


def retrieval_config(settings: Settings, *, use_model: bool = True) -> RetrievalConfig:
    """The configuration of the retriever.

    Raises:
        ConfigError: a stage is unknown or named twice, or there is none.
    """
    names = settings.stages.names()
    if names != StagesConfig().names():
        stages_named(names, settings.judgments)
    return RetrievalConfig(
        stages=names, judgments=settings.judgments, conventions=settings.conventions, use_model=use_model
    )


class ModelAccess(Struct, frozen=True, kw_only=True):
    """The model client and the record, open for a command."""

    record: Record
    router: ModelRouter
    models: ModelClient
    meter: Meter


class Services(ModelAccess, frozen=True, kw_only=True):
    """What a command that works on a task has open: record, session and model client."""

    workspace: Workspace
    settings: Settings
    session: Session
    resumed: OrchestratorRunRow | None = None
    """The run's row from before, if it is resumed."""

    def end_task(self) -> None:
        """End the task: archive its session in the record, and delete its copy of the index."""
        self.session.archive(self.record)
        remove_database(self.workspace.run_copy(self.session.task_id))


@contextlib.contextmanager
def open_model_access(
    workspace: Workspace,
    settings: Settings,
    transport: Callable[[Settings], Transport] = live_transport,
    *,
    task_id: str = "",
    measured_as: str = "",
    resume: bool = False,
    watch: CallWatcher = unwatched,
) -> Iterator[ModelAccess]:
    """Record and model client of a command without a session.

    Tokens are estimated as in the task `measured_as` or in an earlier run of `task_id`, if recorded, or else by what
    was learned from all calls, which is then recorded for `task_id`. With `resume`, what the task asked before is
    answered from the record, and counted once.
    """
    router = router_of(settings)
    meter = Meter()
    with Record.open(workspace.repo, clock=utc_now) as record:
        way = transport(settings)
        asked: frozenset[int] = frozenset()
        read: frozenset[int] = frozenset()
        if resume:
            meter.begin(record.write(calls.total_of_task, task_id))
            made = record.write(calls.list_calls, task_id)
            way = resuming(made, way)
            asked = frozenset(call.id for call in made)
            read = frozenset(row.call_id for row in record.write(calls.list_readings, task_id))
        router = router_of(
            settings, estimators_for(record, router, task_id=task_id, measured_as=measured_as, live=way.live)
        )
        models = ModelClient(
            router,
            way,
            RecordSink(record, meter, router, asked=asked, read=read),
            utc_now,
            proofs=RecordedProofs(record),
            biases=RecordedBiases(record),
            copiers=lambda pass_id: record.write(calls.copying_models, task_of(pass_id), beside=pass_id),
            watch=watch,
        )
        yield ModelAccess(record=record, router=router, models=models, meter=meter)


@contextlib.contextmanager
def open_services(
    workspace: Workspace,
    settings: Settings,
    task_id: str,
    transport: Callable[[Settings], Transport] = live_transport,
    *,
    measured_as: str = "",
    resume: bool = False,
    watch: CallWatcher = unwatched,
) -> Iterator[Services]:
    """Open record, session and model client for one task, which may replay another one or be resumed. The task is
    locked meanwhile. Tokens are estimated as in the task `measured_as`, if one is given. The session is kept unless the command archives it, or ends with an error after which it cannot be
    resumed.

    Raises:
        UsageError: another process holds the task, or it cannot be resumed.
    """
    retrieval_config(settings)  # a stage that there is not is refused before anything is written
    with (
        task_lock(workspace, task_id),
        open_model_access(
            workspace,
            settings,
            transport,
            task_id=task_id,
            measured_as=measured_as,
            resume=resume,
            watch=watch,
        ) as access,
        contextlib.ExitStack() as stack,
    ):
        # Read again, now that nobody else can end it.
        resumed = access.record.write(resumable, task_id) if resume else None
        if resume:
            restore_session(workspace.repo, access.record, task_id)
        session = stack.enter_context(Session.open(workspace.repo, task_id, clock=utc_now))
        services = Services(
            **structs.asdict(access),
            workspace=workspace,
            settings=settings,
            session=session,
            resumed=resumed,
        )
        try:
            yield services
        except BaseException as error:
            over = status_of(error) is RunStatus.FAILED and resumed is None
            if over and has_session(workspace.repo, task_id):
                services.end_task()
            raise


def require_short(services: Services, words: str) -> None:
    """Check that a task's words leave space for code in every prompt.

    Raises:
        WindowExceeded: they do not; nothing was asked.
    """
    roles: tuple[Role, ...] = ("reasoning", "coding")
    for role in roles:
        window, need = services.router.window(role), services.models.count(words, role)
        if need > window.context - window.reserved:
            tag = services.router.resolve(role, role).tag
            raise WindowExceeded(
                f"the task alone has about {need:,} tokens, and {tag} a window of {window.context:,}",
                hint="shorten it: say what to change, and name files and tests, which are read where they are",
            )


def retriever_over(services: Services, index: Connection, root: Path, *, use_model: bool = True) -> Retriever:
    """Retrieval that reads the index through `index` (read-only) and the files below `root`."""
    return Retriever(
        kb=KnowledgeBase(index),
        root=root,
        models=services.models,
        record=services.record,
        session=services.session,
        config=retrieval_config(services.settings, use_model=use_model),
    )


def require_record(workspace: Workspace) -> None:
    """Check that there is a record, without creating one.

    Raises:
        UsageError: there is no record yet.
    """
    if not workspace.raw.exists():
        raise UsageError("nothing has been recorded here yet", hint="`cra solve` records the first run")
