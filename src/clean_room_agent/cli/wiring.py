"""The only place that builds objects: from a configuration to the parts of a command."""

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from clean_room_agent import secrets_names
from clean_room_agent.artifacts.ids import short_id
from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.artifacts.package import ContextPackage
from clean_room_agent.artifacts.tasks import RefinementRequest, Role, RoomRequest
from clean_room_agent.cli.call_rows import RecordSink
from clean_room_agent.cli.clock import utc_now
from clean_room_agent.cli.gauges import gauges_for
from clean_room_agent.cli.indexing import index_recorded, processors
from clean_room_agent.cli.model_server import open_server
from clean_room_agent.cli.prompts import PROMPTS
from clean_room_agent.cli.settings import Settings
from clean_room_agent.db.connection import backup, connect_file, remove_database
from clean_room_agent.db.raw import index_runs
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.rows import Connection
from clean_room_agent.db.session import Session, has_session
from clean_room_agent.errors import ConfigError, UsageError
from clean_room_agent.git.repository import Repository, find_top
from clean_room_agent.git.worktree import add_worktree, remove_worktree, stand_on
from clean_room_agent.indexer.build import IndexSummary, index_repository
from clean_room_agent.indexer.update import update_paths
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.config import is_loopback
from clean_room_agent.llm.exchange import ChatRequest, RawAnswer, Transport
from clean_room_agent.llm.gauge import Gauge
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.orchestrator.chronicle import Chronicle, RunHeader
from clean_room_agent.orchestrator.events import Observer
from clean_room_agent.orchestrator.meter import Meter
from clean_room_agent.orchestrator.run import RunLimits
from clean_room_agent.orchestrator.setup import RunParts, status_of
from clean_room_agent.orchestrator.shelter import Ground
from clean_room_agent.query.knowledge import KnowledgeBase
from clean_room_agent.retrieval.config import RetrievalConfig
from clean_room_agent.retrieval.registry import STAGES
from clean_room_agent.retrieval.retriever import Retriever
from clean_room_agent.sandbox.bubblewrap import find_bubblewrap
from clean_room_agent.workspace import Workspace

Progress = Callable[[int, int], None]
TOLD_ROLES: tuple[Role, ...] = ("coding", "reasoning", "classifier")


def workspace_of(path: Path) -> Workspace:
    """The workspace of the repository that `path` stands in."""
    return Workspace(repo=find_top(path.absolute()))


def cache_folder() -> Path:
    """The user's cache folder for this program."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "cra"


def live_transport(settings: Settings) -> Transport:
    """The way to the configured model server; nothing is sent yet."""
    return open_server(settings.models)


class NoTransport:
    """The transport of a command that promised to ask no model."""

    provider = "none"
    live = False

    def send(self, request: ChatRequest) -> RawAnswer:
        """Refuses: nothing may be asked.

        Raises:
            UsageError: always.
        """
        raise UsageError(f"--no-model was given, and {request.identity} wanted to ask one")

    def window(self, tag: str) -> int | None:  # noqa: ARG002 - Transport's signature
        """None: nobody has a window."""
        return None

    def count(self, tag: str, system: str, prompt: str) -> int | None:  # noqa: ARG002 - Transport's signature
        """None: nobody counts."""
        return None


def no_transport(_settings: Settings) -> Transport:
    """For commands that work without a model."""
    return NoTransport()


def without_models(settings: Settings) -> Settings:
    """The settings with models that are never asked, for a command that works without any."""
    models = {"base_url": "http://127.0.0.1:1", "coding": "none", "reasoning": "none"}
    return Settings(source=settings.source, data={**settings.data, "models": models})


def router_of(settings: Settings, learned: Mapping[str, Gauge] | None = None) -> ModelRouter:
    """The router of the configuration, its overrides checked against the prompts and stages that there are."""
    router = ModelRouter(settings.models, settings.budget, learned)
    router.check(((prompt.name, prompt.role) for prompt in PROMPTS), STAGES)
    return router


class LocalContext:
    """The `ContextPort` of a run: retrieval over the run's own copy of the index."""

    def __init__(self, make_retriever: Callable[[], Retriever], index: Connection) -> None:
        self._make_retriever = make_retriever
        self._retriever = make_retriever()
        self._index = index

    def retrieve(self, request: RoomRequest) -> ContextPackage:
        """As the port says."""
        return self._retriever.retrieve(request)

    def refine(self, request: RefinementRequest, room: RoomRequest) -> ContextPackage:
        """As the port says."""
        return self._retriever.refine(request, room)

    def refresh(self, root: Path, paths: Sequence[str]) -> None:
        """As the port says; a retriever knows one state of the index, so there is a new one afterwards."""
        update_paths(self._index, root, paths)
        self._retriever = self._make_retriever()


def refresh_index(
    workspace: Workspace,
    settings: Settings,
    record: Record,
    *,
    full: bool = False,
    progress: Progress | None = None,
) -> IndexSummary:
    """The repository's index says what its files hold now; the record has the run."""
    workspace.create()
    return index_recorded(
        workspace.repo,
        partial(
            index_repository,
            workspace.repo,
            config=settings.index,
            jobs=processors(),
            full=full,
            progress=progress or (lambda _done, _total: None),
        ),
        note=lambda row: record.write(index_runs.append_index_run, row),
        now=record.now,
    )


def retrieval_config(settings: Settings, *, use_model: bool = True) -> RetrievalConfig:
    """What the retriever is told."""
    names = settings.stages.names()
    unknown = [name for name in names if name not in STAGES]
    if unknown:
        raise ConfigError(
            f"{settings.source}: [stages] default names {unknown[0]!r}, which is no stage",
            hint=f"stages: {', '.join(STAGES)}",
        )
    return RetrievalConfig(stages=names, judgments=settings.judgments, use_model=use_model)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedState:
    """What a recorded run began with."""

    task_id: str
    head: str
    """The commit that HEAD was."""
    snapshot: str
    """The commit that held its files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What every command that asks models has open."""

    record: Record
    router: ModelRouter
    models: ModelClient
    meter: Meter


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk(Asking):
    """What every command that works on a task has open."""

    workspace: Workspace
    settings: Settings
    session: Session


@contextlib.contextmanager
def open_asking(
    workspace: Workspace,
    settings: Settings,
    transport: Callable[[Settings], Transport] = live_transport,
    *,
    task_id: str = "",
    measured_as: str = "",
) -> Iterator[Asking]:
    """Record and model client of a command that keeps nothing in mind between its calls.

    Prompts are measured as those of the task `measured_as` or of an earlier run of `task_id` were, where the record
    knows of it, else by what was learned from all calls; the record then says so for `task_id`.
    """
    router = router_of(settings)
    meter = Meter()
    with Record.open(workspace.repo, clock=utc_now) as record:
        way = transport(settings)
        router = router_of(
            settings, gauges_for(record, router, task_id=task_id, measured_as=measured_as, live=way.live)
        )
        models = ModelClient(router, way, RecordSink(record, meter, router), utc_now)
        yield Asking(record=record, router=router, models=models, meter=meter)


@contextlib.contextmanager
def open_desk(
    workspace: Workspace,
    settings: Settings,
    task_id: str,
    transport: Callable[[Settings], Transport] = live_transport,
    replay_of: RecordedState | None = None,
) -> Iterator[Desk]:
    """Record, session and model client of one task, which may replay another.

    The session is kept unless the command archives it, or ends by an error after which nothing can go on.
    """
    measured_as = replay_of.task_id if replay_of else ""
    retrieval_config(settings)  # a stage that there is not is refused before anything is written
    with (
        open_asking(workspace, settings, transport, task_id=task_id, measured_as=measured_as) as asking,
        Session.open(workspace.repo, task_id, clock=utc_now) as session,
    ):
        try:
            yield Desk(
                workspace=workspace,
                settings=settings,
                record=asking.record,
                session=session,
                router=asking.router,
                models=asking.models,
                meter=asking.meter,
            )
        except BaseException as error:
            if status_of(error) is RunStatus.FAILED and has_session(workspace.repo, task_id):
                session.archive(asking.record)
            raise


@contextlib.contextmanager
def index_for_run(
    desk: Desk, repo: Repository, task_id: str, replay_of: RecordedState | None
) -> Iterator[Path]:
    """A run's own copy of the curated database, gone afterwards.

    It is a copy of the repository's, refreshed first; for a replay it is built anew from the recorded snapshot, because
    files and history may have gone on since.
    """
    path = desk.workspace.run_copy(task_id)
    try:
        if replay_of is None:
            refresh_index(desk.workspace, desk.settings, desk.record)
            with contextlib.closing(
                connect_file("curated", desk.workspace.curated, read_only=True)
            ) as source:
                backup(source, path)
        else:
            _index_recorded(desk, repo, task_id, replay_of, path)
        yield path
    finally:
        remove_database(path)


def _index_recorded(desk: Desk, repo: Repository, task_id: str, state: RecordedState, target: Path) -> None:
    """`target` is an index of the recorded snapshot's files with the history that HEAD had then."""
    where = desk.workspace.worktrees(cache_folder()) / f"{short_id(task_id)}-index"
    worktree = add_worktree(repo, state.snapshot, where, task_id)
    try:
        stand_on(worktree, state.head)
        index_repository(
            where, config=desk.settings.index, jobs=processors(), progress=lambda _done, _total: None
        )
        built = Workspace(repo=where).curated
        with contextlib.closing(connect_file("curated", built, read_only=True)) as source:
            backup(source, target)
    finally:
        remove_worktree(worktree)


def retriever_over(desk: Desk, index: Connection, root: Path, *, use_model: bool = True) -> Retriever:
    """Retrieval that reads the index through `index` (read-only) and the files below `root`."""
    return Retriever(
        kb=KnowledgeBase(index),
        root=root,
        models=desk.models,
        record=desk.record,
        session=desk.session,
        config=retrieval_config(desk.settings, use_model=use_model),
    )


@contextlib.contextmanager
def run_parts(
    desk: Desk,
    repo: Repository,
    task_id: str,
    task: str,
    observer: Observer,
    *,
    command: str,
    index_path: Path,
    replay_of: RecordedState | None = None,
) -> Iterator[RunParts]:
    """The parts of a run, over the copy of the index at `index_path`."""
    settings = desk.settings
    header = RunHeader(
        task_id=task_id,
        task=task,
        repo_path=str(repo.top),
        command=command,
        config=json.dumps(settings.data, default=str, sort_keys=True),
        stages=",".join(settings.stages.names()),
        program_version=program_version(),
        base_commit=repo.head,
    )
    worktrees = settings.worktree.root or desk.workspace.worktrees(cache_folder())
    with contextlib.ExitStack() as stack:
        reading = stack.enter_context(contextlib.closing(connect_file("curated", index_path, read_only=True)))
        writing = stack.enter_context(contextlib.closing(connect_file("curated", index_path)))
        yield RunParts(
            repo=repo,
            models=desk.models,
            model_lines=tuple(
                (role, desk.router.resolve(role, role).tag, desk.router.window(role).context)
                for role in TOLD_ROLES
                if role != "classifier" or settings.models.classifier is not None
            ),
            local_only=is_loopback(settings.models.base_url),
            session=desk.session,
            chronicle=Chronicle(
                header=header, record=desk.record, router=desk.router, meter=desk.meter, observer=observer
            ),
            observer=observer,
            meter=desk.meter,
            limits=RunLimits(solve=settings.solve, orchestrator=settings.orchestrator, edit=settings.edit),
            ground=Ground(
                config=settings.sandbox,
                testing=settings.testing,
                worktree=settings.worktree,
                home=Path.home(),
                find=find_bubblewrap,
            ),
            worktree_path=worktrees / short_id(task_id),
            report=worktrees / f"{short_id(task_id)}-reports" / "results.xml",
            environment=dict(os.environ),
            is_secret=secrets_names.is_secret_name,
            open_context=lambda root: LocalContext(lambda: retriever_over(desk, reading, root), writing),
            monotonic=time.monotonic,
            replay_of=replay_of.snapshot if replay_of else None,
        )


def program_version() -> str:
    """The installed version."""
    from importlib.metadata import version

    return version("clean-room-agent")
