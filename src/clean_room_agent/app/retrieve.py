"""Retrieval by itself, for `cra retrieve`: finds the context for a task, and records the decisions."""

import contextlib
from collections.abc import Callable

from msgspec import Struct

from clean_room_agent.app import wiring
from clean_room_agent.app.indexing import refresh_index
from clean_room_agent.app.run_index import index_progress
from clean_room_agent.app.settings import Overrides, Settings, load_settings
from clean_room_agent.artifacts.context import ContextRequest
from clean_room_agent.artifacts.names import new_task_id
from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw import passes
from clean_room_agent.db.raw.passes import DecisionRow, list_decisions
from clean_room_agent.errors import ConfigError
from clean_room_agent.orchestrator.events import Observer, PassProgress
from clean_room_agent.report.causes import ending_of
from clean_room_agent.retrieval.retriever import Retrieved
from clean_room_agent.workspace import Workspace


class RetrievedContext(Struct, frozen=True, kw_only=True):
    """A context, with every decision on the way to it."""

    retrieved: Retrieved
    decisions: tuple[DecisionRow, ...]
    notes: tuple[str, ...]
    """Why it is empty, or why the model's answers were unusable."""


def retrieval_settings(
    workspace: Workspace, overrides: Overrides, *, use_model: bool, warn: Callable[[str], None]
) -> Settings:
    """The settings that a retrieval needs; without a model, no configuration is needed.

    Raises:
        ConfigError: something is missing.
    """
    if use_model and not workspace.config.exists():
        raise ConfigError(
            f"no configuration at {workspace.config}",
            hint="run `cra init`, or use no model: --no-model",
        )
    settings = load_settings(workspace.config, overrides, optional=not use_model)
    if not use_model and "models" not in settings.data:
        settings = wiring.with_plain_budget(wiring.without_models(settings), warn)
    settings.require("models", "budget", "stages")
    return settings


def retrieve(
    workspace: Workspace, settings: Settings, task: str, observer: Observer, *, use_model: bool
) -> RetrievedContext:
    """Bring the index up to date and retrieve the context for `task`, recorded as a separate pass."""
    task_id = new_task_id()
    transport = wiring.live_transport if use_model else wiring.no_transport
    with wiring.open_services(workspace, settings, task_id, transport, watch=observer.notice) as services:
        record = services.record
        if use_model:
            wiring.require_short(services, task)
        refresh_index(workspace, settings.index, record, progress=index_progress(observer))
        row_id = record.write(passes.append_task_run, _pass_row(services, task_id, use_model=use_model))
        with contextlib.closing(connect_file("curated", workspace.curated, read_only=True)) as index:
            retriever = wiring.retriever_over(services, index, workspace.repo, use_model=use_model)
            observer.notice(PassProgress(doing="looking for what it needs"))
            found = retriever.retrieve(
                ContextRequest(pass_id=task_id, mode="implement", role="coding", task=task)
            )
        spent = services.meter.read()
        outcome = passes.TaskRunOutcome(
            success=True,
            total_tokens=spent.tokens,
            total_latency_ms=spent.latency_ms,
            completed_at=record.now(),
        )
        record.write(passes.finish_task_run, row_id, outcome)
        rows = record.write(list_decisions, task_id)
        ending = record.write(ending_of, task_id)
        services.session.archive(record)
    poor = ending.weak or not found.package.items
    return RetrievedContext(retrieved=found, decisions=rows, notes=tuple(ending.sentences()) if poor else ())


def _pass_row(services: wiring.Services, task_id: str, *, use_model: bool) -> passes.TaskRunRow:
    window = services.router.window("coding")
    return passes.TaskRunRow(
        task_id=task_id,
        repo_path=str(services.workspace.repo),
        mode="implement",
        execute_model=services.router.resolve("coding", "implement").tag if use_model else "",
        context_window=window.context,
        reserved_tokens=window.reserved,
        stages=",".join(services.settings.stages.names()),
        timestamp=services.record.now(),
    )
