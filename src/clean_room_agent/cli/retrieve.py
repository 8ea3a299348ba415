"""`cra retrieve`: the curated context for a task, for a person or for another tool."""

import contextlib
from pathlib import Path
from typing import IO

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.index_copy import index_progress
from clean_room_agent.app.settings import Overrides, Settings, load_settings
from clean_room_agent.artifacts.ids import new_task_id
from clean_room_agent.artifacts.tasks import ContextRequest
from clean_room_agent.cli import options, output
from clean_room_agent.cli.views.retrieve import say_why_poor, show
from clean_room_agent.cli.watching import watching
from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw import decisions, task_runs
from clean_room_agent.errors import ConfigError
from clean_room_agent.orchestrator.events import PassProgress
from clean_room_agent.workspace import Workspace

FORMATS = ("text", "json", "markdown", "prompt")


@click.command()
@options.task_argument
@options.repo_option
@options.issue_option
@options.budget_options
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", help="How to show the package.")
@click.option("--no-model", is_flag=True, help="Judge by score alone; needs no model server.")
@options.json_option
@options.exact_option
def command(
    task: str | None,
    repo: Path,
    issue: IO[str] | None,
    stages: str | None,
    context_window: int | None,
    reserved_tokens: int | None,
    budget_config: Path | None,
    form: str,
    no_model: bool,
    as_json: bool,
) -> int:
    """Show the curated context for TASK: what is in, at what detail, why, and what it costs."""
    workspace = wiring.workspace_of(repo)
    words = options.task_text(task, issue)
    overrides = Overrides(
        context_window=context_window,
        reserved_tokens=reserved_tokens,
        budget_config=budget_config,
        stages=stages,
    )
    settings = _settings(workspace, overrides, no_model=no_model)
    task_id = new_task_id()
    transport = wiring.no_transport if no_model else wiring.live_transport
    with (
        watching(None) as observer,
        wiring.open_services(workspace, settings, task_id, transport, watch=observer.notice) as services,
    ):
        wiring.refresh_index(workspace, settings, services.record, progress=index_progress(observer))
        window = services.router.window("coding")
        row = task_runs.TaskRunRow(
            task_id=task_id,
            repo_path=str(workspace.repo),
            mode="implement",
            execute_model="" if no_model else services.router.resolve("coding", "implement").tag,
            context_window=window.context,
            reserved_tokens=window.reserved,
            stages=",".join(settings.stages.names()),
            timestamp=services.record.now(),
        )
        row_id = services.record.write(task_runs.append_task_run, row)
        with contextlib.closing(connect_file("curated", workspace.curated, read_only=True)) as index:
            retriever = wiring.retriever_over(services, index, workspace.repo, use_model=not no_model)
            request = ContextRequest(pass_id=task_id, mode="implement", role="coding", task=words)
            observer.notice(PassProgress(doing="looking for what it needs"))
            found = retriever.look_up(request)
        spent = services.meter.read()
        outcome = task_runs.TaskRunOutcome(
            success=True,
            total_tokens=spent.tokens,
            total_latency_ms=spent.latency_ms,
            completed_at=services.record.now(),
        )
        services.record.write(task_runs.finish_task_run, row_id, outcome)
        rows = services.record.write(decisions.list_decisions, task_id)
        say_why_poor(services, task_id, found)
        services.session.archive(services.record)
    show(found, rows, "json" if as_json else form)
    return 0


def _settings(workspace: Workspace, overrides: Overrides, *, no_model: bool) -> Settings:
    """What a retrieval needs, checked.

    Raises:
        ConfigError: something is missing.
    """
    if not no_model and not workspace.config.exists():
        raise ConfigError(
            f"no configuration at {workspace.config}",
            hint="run `cra init`, or do without a model: --no-model",
        )
    settings = load_settings(workspace.config, overrides, optional=no_model)
    if no_model and "models" not in settings.data:
        settings = wiring.with_plain_budget(wiring.without_models(settings), output.aside)
    settings.require("models", "budget", "stages")
    return settings
