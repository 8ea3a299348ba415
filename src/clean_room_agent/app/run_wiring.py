"""The parts of a run of `cra solve` or `cra plan`, built for the orchestrator."""

import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from clean_room_agent import secret_files
from clean_room_agent.app.context_port import LocalContext
from clean_room_agent.app.settings import Settings
from clean_room_agent.app.wiring import (
    RecordedState,
    Services,
    retriever_over,
    worktrees_folder,
)
from clean_room_agent.artifacts.ids import short_id
from clean_room_agent.artifacts.tasks import Role
from clean_room_agent.db.connection import connect_file
from clean_room_agent.git.repository import Repository
from clean_room_agent.git.worktree import reports_beside
from clean_room_agent.llm.config import ModelsConfig, host_of, is_loopback
from clean_room_agent.orchestrator.events import Observer
from clean_room_agent.orchestrator.resume.hints import Hint
from clean_room_agent.orchestrator.resume.interrupts import Interrupts
from clean_room_agent.orchestrator.run import RunLimits
from clean_room_agent.orchestrator.run_recorder import RunHeader, RunRecorder
from clean_room_agent.orchestrator.sandbox_setup import SandboxInputs
from clean_room_agent.orchestrator.setup import RunParts
from clean_room_agent.sandbox.bubblewrap import working_bubblewrap
from clean_room_agent.version import VERSION
from clean_room_agent.workspace import private_folder

TOLD_ROLES: tuple[Role, ...] = ("coding", "reasoning", "classifier")


@contextlib.contextmanager
def run_parts(
    services: Services,
    repo: Repository,
    task_id: str,
    task: str,
    observer: Observer,
    *,
    command: str,
    index_path: Path,
    replay_of: RecordedState | None = None,
    hints: tuple[Hint, ...] = (),
    interrupts: Interrupts | None = None,
) -> Iterator[RunParts]:
    """The parts of a run, over the copy of the index at `index_path`."""
    settings = services.settings
    header = _header(services, repo, task, command)
    worktrees = private_folder(worktrees_folder(services.workspace, settings))
    with contextlib.ExitStack() as stack:
        reading = stack.enter_context(contextlib.closing(connect_file("curated", index_path, read_only=True)))
        writing = stack.enter_context(contextlib.closing(connect_file("curated", index_path)))
        yield RunParts(
            repo=repo,
            models=services.models,
            model_lines=tuple(
                (role, services.router.resolve(role, role).tag, services.router.window(role).context)
                for role in TOLD_ROLES
                if role != "classifier" or settings.models.classifier is not None
            ),
            remote=_prompts_go_to(settings.models),
            session=services.session,
            recorder=RunRecorder(
                header=header,
                record=services.record,
                router=services.router,
                meter=services.meter,
                observer=observer,
                resumed=services.resumed,
            ),
            observer=observer,
            meter=services.meter,
            limits=_limits(settings),
            sandbox_inputs=sandbox_inputs_of(settings),
            worktree_path=worktrees / short_id(task_id),
            report=reports_beside(worktrees / short_id(task_id)) / "results.xml",
            environment=dict(os.environ),
            is_secret=secret_files.is_secret_name,
            open_context=lambda root: LocalContext(lambda: retriever_over(services, reading, root), writing),
            monotonic=time.monotonic,
            replay_of=replay_of.snapshot if replay_of else None,
            resumed=services.resumed,
            hints=hints,
            interrupts=interrupts or Interrupts(),
        )


def sandbox_inputs_of(settings: Settings) -> SandboxInputs:
    """Where commands are to run, as configured."""
    return SandboxInputs(
        config=settings.sandbox,
        testing=settings.testing,
        worktree=settings.worktree,
        home=Path.home(),
        find=working_bubblewrap,
    )


def _limits(settings: Settings) -> RunLimits:
    return RunLimits(
        solve=settings.solve,
        orchestrator=settings.orchestrator,
        edit=settings.edit,
        recovery=settings.recovery,
    )


def _header(services: Services, repo: Repository, task: str, command: str) -> RunHeader:
    return RunHeader(
        task_id=services.session.task_id,
        task=task,
        repo_path=str(repo.top),
        command=command,
        config=json.dumps(services.settings.data, default=str, sort_keys=True),
        stages=",".join(services.settings.stages.names()),
        program_version=VERSION,
        base_commit=repo.head,
    )


def _prompts_go_to(models: ModelsConfig) -> str:
    """Where prompts may go beyond this machine; "" for nowhere."""
    if not is_loopback(models.base_url):
        return host_of(models.base_url)
    return "this machine's server, and wherever it sends them on" if models.allow_remote else ""
