"""`cra plan`: a plan for a task, to review and edit."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import IO

import click

from clean_room_agent.artifacts.ids import new_task_id, short_id
from clean_room_agent.artifacts.plans import PlanArtifact
from clean_room_agent.cli import options, output, wiring
from clean_room_agent.cli.run_copy import index_for_run
from clean_room_agent.cli.run_parts import run_parts
from clean_room_agent.cli.settings import Overrides, Settings, load_settings
from clean_room_agent.cli.solve import watching
from clean_room_agent.errors import CraError
from clean_room_agent.git.repository import open_repository
from clean_room_agent.llm.exchange import Transport
from clean_room_agent.orchestrator.events import Observer
from clean_room_agent.orchestrator.only_plan import make_plan
from clean_room_agent.whole_file import write_whole
from clean_room_agent.workspace import Workspace

NEEDED = ("models", "budget", "stages", "solve", "testing")


@click.command()
@options.task_argument
@options.repo_option
@options.issue_option
@options.budget_options
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the plan to a file.",
)
@options.json_option
@options.exact_option
@options.verbose_option
def command(
    task: str | None,
    repo: Path,
    issue: IO[str] | None,
    stages: str | None,
    context_window: int | None,
    reserved_tokens: int | None,
    budget_config: Path | None,
    target: Path | None,
    as_json: bool,
    verbose: int,
) -> int:
    """Write a plan for TASK. Edit it, then follow it with `cra solve --plan FILE`."""
    workspace = wiring.workspace_of(repo)
    overrides = Overrides(
        context_window=context_window,
        reserved_tokens=reserved_tokens,
        budget_config=budget_config,
        stages=stages,
    )
    settings = load_settings(workspace.config, overrides)
    words = options.task_text(task, issue)
    with watching(None, verbose=verbose, workspace=workspace) as observer:
        code, plan, reason = run_plan(workspace, settings, words, observer)
    if plan is None:
        raise CraError(
            f"no plan: {reason}", hint="say the task in other words, or name the files it is about"
        )
    text = plan.model_dump_json(indent=2) + "\n"
    if target is not None:
        write_whole(target, text)
        output.aside(f"wrote {target}; follow it with: cra solve --plan {target}")
    if target is None or as_json:
        output.answer(text.rstrip("\n"))
    return code


def run_plan(
    workspace: Workspace,
    settings: Settings,
    task: str,
    observer: Observer,
    transport: Callable[[Settings], Transport] = wiring.live_transport,
    task_id: str | None = None,
) -> tuple[int, PlanArtifact | None, str]:
    """The exit code, the plan, and why there is none."""
    settings.require(*NEEDED)
    task_id = task_id or new_task_id()
    repo = open_repository(workspace.repo)
    with wiring.open_desk(workspace, settings, task_id, transport) as desk, contextlib.ExitStack() as stack:
        index = stack.enter_context(index_for_run(desk, repo, task_id, None))
        parts = stack.enter_context(
            run_parts(desk, repo, task_id, task, observer, command="plan", index_path=index)
        )
        made = make_plan(task_id, task, parts)
        desk.end_task()
    return (0 if made.plan else 1), made.plan, made.reason or f"see cra show {short_id(task_id)}"
