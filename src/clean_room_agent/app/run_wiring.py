"""Builds the parts of a run of `cra solve` or `cra plan` for the orchestrator."""

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.run_index import IndexCopy, IndexProcess
from clean_room_agent.app.settings import Settings
from clean_room_agent.app.wiring import Services, require_models, require_short, worktree_place
from clean_room_agent.artifacts.outcomes import EventKind, TimeKind
from clean_room_agent.cancellation import Interrupts
from clean_room_agent.db.raw.runs import OrchestratorRunRow, append_time_span
from clean_room_agent.folders import home_folder
from clean_room_agent.git.repository import Repository
from clean_room_agent.llm.model_config import ROLES, ModelsConfig, host_of, is_loopback
from clean_room_agent.llm.transport import Transport
from clean_room_agent.orchestrator.events import Observer
from clean_room_agent.orchestrator.journal import Journal, seconds_used
from clean_room_agent.orchestrator.run_recorder import RunRecorder
from clean_room_agent.orchestrator.setup import RunParts
from clean_room_agent.orchestrator.spending import Budget, TimeLog
from clean_room_agent.orchestrator.task import Hints, PlanGiven, RunLimits, Task
from clean_room_agent.orchestrator.test_runs.worktrees import RunnerSetup, WorktreePool
from clean_room_agent.sandbox.bubblewrap import find_bubblewrap, try_machine
from clean_room_agent.version import VERSION

NEEDED = ("models", "budget", "stages", "solve", "testing")
"""The tables that a run cannot do without."""


def begin_timing(
    settings: Settings, transport: Callable[[Settings], Transport], task_id: str, entered_at: str
) -> TimeLog:
    """Start a run's time log with the check that its settings and models are there, before anything that takes long.

    `entered_at` is when the user pressed Enter (UTC, ISO 8601), or "".

    Raises:
        ConfigError: a value is missing.
        ModelError: the server lacks a model, or cannot be asked.
    """
    settings.require(*NEEDED)
    times = TimeLog(task_id, utc_now)
    if entered_at:
        times.add(TimeKind.START, began_at=entered_at)
    with times.timed(TimeKind.PREFLIGHT):
        require_models(settings, transport)
    return times


@contextlib.contextmanager
def run_parts(
    services: Services,
    repo: Repository,
    task: Task,
    observer: Observer,
    *,
    indexing: IndexProcess,
    command: str,
    times: TimeLog,
    replay_of: OrchestratorRunRow | None = None,
    interrupts: Interrupts | None = None,
    given: tuple[tuple[EventKind, str], ...] = (),
) -> Iterator[RunParts]:
    """The parts of a run, with its timing; a new run is recorded with what it was `given`, and `indexing` brings the
    repository's index up to date meanwhile.
    """
    settings, interrupts = services.settings, interrupts or Interrupts()
    require_short(services, task.words)
    place = worktree_place(services.workspace, settings, task.task_id)
    with (
        times.connected(lambda row: services.record.post(append_time_span, row)),
        IndexCopy(services, repo, task.task_id, observer, indexing, replay_of=replay_of) as index,
    ):
        recorder = RunRecorder(
            run=_run_row(services, repo, task, command),
            stages=",".join(settings.stages.names()),
            record=services.record,
            router=services.router,
            meter=services.meter,
            observer=observer,
            given=given,
            resumed=services.resumed,
            timed=times.timed,
        )
        spent = seconds_used(services.session)
        journal = Journal(
            session=services.session,
            recorder=recorder,
            budget=Budget(settings.orchestrator, services.meter, time.monotonic, used_before=spent),
            hints=task.hints,
            interrupts=interrupts,
            behind=services.resumed is not None,
        )
        yield RunParts(
            task=task,
            repo=repo,
            replay_of=replay_of.snapshot_commit if replay_of else None,
            resumed=services.resumed,
            models=services.models,
            model_lines=_model_lines(services),
            remote=_prompts_go_to(settings.models),
            index=index,
            journal=journal,
            worktrees=WorktreePool(
                runner_setup(settings, repo, place), task.task_id, observer, interrupts, times.timed
            ),
        )


def task_of(settings: Settings, task_id: str, description: str, given: PlanGiven) -> Task:
    """The task as it was `given`, within the configured limits."""
    limits = RunLimits(
        solve=settings.solve,
        orchestrator=settings.orchestrator,
        edit=settings.edit,
        recovery=settings.recovery,
        evidence=settings.evidence,
    )
    return Task(
        task_id=task_id,
        description=description,
        hints=Hints(given.hints),
        limits=limits,
        given=given.evidence,
    )


def runner_setup(settings: Settings, repo: Repository, place: Path) -> RunnerSetup:
    """How worktrees with a test runner are set up, the first of them at `place`."""
    return RunnerSetup(
        repo=repo,
        place=place,
        environment=dict(os.environ),
        sandbox=settings.sandbox,
        testing=settings.testing,
        worktree=settings.worktree,
        home=home_folder(),
        find=find_bubblewrap,
        try_machine=try_machine,
    )


def _model_lines(services: Services) -> tuple[tuple[str, str, int], ...]:
    """(role, model tag, window in tokens) of each role with a separate model."""
    router, models = services.router, services.settings.models
    return tuple(
        (role, router.resolve(role, role).tag, router.window(role).context)
        for role in ROLES
        if role != "classifier" or models.classifier is not None
    )


def _run_row(services: Services, repo: Repository, task: Task, command: str) -> OrchestratorRunRow:
    return OrchestratorRunRow(
        task_id=task.task_id,
        repo_path=str(repo.top),
        task_description=task.description,
        timestamp=services.record.now(),
        command=command,
        config=json.dumps(services.settings.data, default=str, sort_keys=True),
        program_version=VERSION,
        base_commit=repo.head,
    )


def _prompts_go_to(models: ModelsConfig) -> str:
    """Where prompts may go beyond this machine; "" for nowhere."""
    remote = [one.base_url for one in models.each_server() if not is_loopback(one.base_url)]
    if remote:
        return " and ".join(dict.fromkeys(map(host_of, remote)))
    return "this machine's server, and wherever it forwards them" if models.allow_remote else ""
