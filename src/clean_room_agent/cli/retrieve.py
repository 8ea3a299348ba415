"""`cra retrieve`: find the context for a task, record the decisions, and print it, for a person or another tool."""

import contextlib
from pathlib import Path
from typing import IO

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.indexing import refresh_index
from clean_room_agent.app.run_index import index_progress
from clean_room_agent.app.settings import Overrides, Settings, load_settings
from clean_room_agent.artifacts.context import ContextRequest
from clean_room_agent.artifacts.names import new_task_id
from clean_room_agent.cli import options, output
from clean_room_agent.cli.safe_console import answers_console
from clean_room_agent.cli.watching import watching
from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw import passes
from clean_room_agent.db.raw.passes import DecisionRow, list_decisions
from clean_room_agent.errors import ConfigError
from clean_room_agent.orchestrator.events import Observer, PassProgress
from clean_room_agent.report.causes import ending_of
from clean_room_agent.report.package import as_markdown, as_object, as_table
from clean_room_agent.retrieval.retriever import Retrieved
from clean_room_agent.workspace import Workspace

FORMATS = ("text", "json", "markdown", "prompt")


@click.command()
@options.task_argument
@options.repo_option
@options.issue_option
@options.budget_options
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", help="The output format.")
@click.option("--no-model", is_flag=True, help="Decide by score alone; needs no model server.")
@options.json_option
@options.exact_option
def command(
    task: str | None,
    repo: Path,
    issue: IO[str] | None,
    overrides: Overrides,
    form: str,
    no_model: bool,
    as_json: bool,
) -> int:
    """Show the context for TASK: what is included, in what detail, why, and how many tokens it takes."""
    workspace = wiring.workspace_of(repo)
    words = options.task_text(task, issue)
    settings = _retrieval_settings(workspace, overrides, use_model=not no_model)
    with watching(None) as observer:
        found, rows, notes = _retrieve_context(workspace, settings, words, observer, use_model=not no_model)
    for note in notes:
        output.aside(note)
    show(found, rows, "json" if as_json else form)
    return 0


def show(found: Retrieved, rows: tuple[DecisionRow, ...], form: str) -> None:
    """Write the package to standard output in one of `FORMATS`."""
    package = found.package
    if form == "json":
        output.answer_json(as_object(package, found.candidates, rows))
    elif form == "markdown":
        output.answer(as_markdown(package))
    elif form == "prompt":
        output.hand_on(package.to_prompt_text())
    else:
        console = answers_console()
        console.print(as_table(package, rows, width=console.width), highlight=False, soft_wrap=True)


def _retrieval_settings(workspace: Workspace, overrides: Overrides, *, use_model: bool) -> Settings:
    """The settings that a retrieval needs; without a model, no configuration is needed."""
    if not use_model:
        return wiring.offline_settings(workspace, overrides, output.aside)
    if not workspace.config.exists():
        raise ConfigError(
            f"no configuration at {workspace.config}", hint="run `cra init`, or use no model: --no-model"
        )
    settings = load_settings(workspace.config, overrides)
    settings.require("models", "budget", "stages")
    return settings


def _retrieve_context(
    workspace: Workspace, settings: Settings, task: str, observer: Observer, *, use_model: bool
) -> tuple[Retrieved, tuple[DecisionRow, ...], tuple[str, ...]]:
    """Bring the index up to date and retrieve the context for `task`, recorded as a separate pass; returns its decisions, too, and
    why it is empty or the model's answers were unusable.
    """
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
    return found, rows, ending.sentences() if poor else ()


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
