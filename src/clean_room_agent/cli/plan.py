"""`cra plan`: a plan for a task, to review and edit."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import click

from clean_room_agent.artifacts.ids import new_task_id, short_id
from clean_room_agent.artifacts.plans import PlanArtifact
from clean_room_agent.cli import options, output, wiring
from clean_room_agent.cli.plan_editing import edit_plan, require_editor
from clean_room_agent.cli.run_copy import index_for_run
from clean_room_agent.cli.run_parts import run_parts
from clean_room_agent.cli.settings import Overrides, Settings, load_settings
from clean_room_agent.cli.solve import read_text
from clean_room_agent.cli.watching import watching
from clean_room_agent.errors import ArtifactError, CraError, UsageError
from clean_room_agent.execute.plan_file import is_written, load_plan
from clean_room_agent.execute.written_plan import written_text
from clean_room_agent.git.repository import list_files, open_repository
from clean_room_agent.llm.exchange import Transport
from clean_room_agent.orchestrator.events import Observer
from clean_room_agent.orchestrator.only_plan import make_plan
from clean_room_agent.report.causes import Ending, ending_of
from clean_room_agent.whole_file import write_whole
from clean_room_agent.workspace import Workspace

HELP = """Write a plan for TASK: its steps, each with the files that it changes. `cra solve --plan FILE` follows it.

\b
cra plan TASK -o plan.json                a plan to review; solve follows it as one step
cra plan TASK --edit -o plan.toml         the same in your editor, as steps that solve does one by one
cra plan --plan plan.toml --edit          edit a plan that is there; without --edit: check it, fill it in

\b
By hand, a plan is as short as this:
  task = "Splitting a bill loses cents"
  [[steps]]
  description = "Give the cents that are left over to the first people."
  files = ["till/money.py"]
Further keys of a step: symbols, depends_on, id; of the plan: files, for steps that name none, and rationale. A file is
modified where it exists and created where not; {path = "old.py", role = "delete"} deletes one.

A FILE whose name ends in .toml gets these steps, as you left them with --edit; any other the full plan in JSON. An editor
closed without a change keeps the plan; an empty text gives it up.

Exit codes: 0 a plan, 1 none came or it was given up, 2 usage, or the file or the edited text is no plan, 3 model server.
"""
NEEDED = ("models", "budget", "stages", "solve", "testing")


@click.command(help=HELP)
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
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Take this plan; no model is asked.",
)
@click.option("--edit", is_flag=True, help="Open the plan in $VISUAL or $EDITOR before it is written.")
@options.events_option
@options.json_option
@options.notify_option
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
    plan_file: Path | None,
    edit: bool,
    events: IO[str] | None,
    as_json: bool,
    verbose: int,
) -> int:
    """The command."""
    workspace = wiring.workspace_of(repo)
    if plan_file is not None and (task is not None or issue is not None):
        raise UsageError("--plan takes a plan that is there: give no TASK or --issue with it")
    overrides = Overrides(
        context_window=context_window,
        reserved_tokens=reserved_tokens,
        budget_config=budget_config,
        stages=stages,
    )
    if plan_file is not None and overrides != Overrides():
        raise UsageError("--plan asks no model: --stages and the budget's flags have nothing to do there")
    if edit:
        require_editor()
    if plan_file is None:
        made = _make(workspace, overrides, options.task_text(task, issue), events, verbose)
        source = _Source(plan=made, text="")
    else:
        source = _read(workspace, plan_file, edit=edit)
        target = target or (plan_file if edit else None)
    as_toml = target is not None and (
        target.suffix.lower() == ".toml" or (target == plan_file and source.text != "")
    )
    paths = frozenset(list_files(workspace.repo))
    plan, text = source.plan, source.text
    if plan is not None and (edit or as_toml):
        text = written_text(plan, paths)
    if edit or plan is None:
        text, plan = edit_plan(text, paths, written_from=plan)
    document = plan.model_dump_json(indent=2) + "\n"
    if target is not None:
        write_whole(target, text if as_toml else document)
        output.aside(f"wrote {target}; follow it with: cra solve --plan {target}")
    if target is None or as_json:
        output.answer(document.rstrip("\n"))
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """What there is before anything is edited."""

    plan: PlanArtifact | None
    """None where the text is to be edited first: it may be no plan yet."""
    text: str
    """As a person wrote it; "" where the plan is not in that form."""


def _read(workspace: Workspace, path: Path, *, edit: bool) -> _Source:
    """The plan in a file; of one that a person wrote and is to edit, the text alone."""
    text = read_text(path)
    if edit and is_written(text, str(path)):
        return _Source(plan=None, text=text)
    plan = load_plan(text, str(path), frozenset(list_files(workspace.repo)))
    if not isinstance(plan, PlanArtifact):
        raise ArtifactError(
            f"{path}: a plan has steps; this has parts alone", hint="cra solve --meta-plan FILE"
        )
    return _Source(plan=plan, text="")


def _make(
    workspace: Workspace, overrides: Overrides, task: str, events: IO[str] | None, verbose: int
) -> PlanArtifact:
    """A new plan.

    Raises:
        CraError: none came.
    """
    settings = load_settings(workspace.config, overrides)
    with watching(events, verbose=verbose, workspace=workspace) as observer:
        _, plan, reason = run_plan(workspace, settings, task, observer)
    if plan is None:
        raise CraError(
            f"no plan: {reason}", hint="say the task in other words, or name the files it is about"
        )
    return plan


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
    wiring.require_models(settings, transport)
    task_id = task_id or new_task_id()
    repo = open_repository(workspace.repo)
    with (
        wiring.open_desk(workspace, settings, task_id, transport, watch=observer.notice) as desk,
        contextlib.ExitStack() as stack,
    ):
        index = stack.enter_context(index_for_run(desk, repo, task_id, None, observer))
        parts = stack.enter_context(
            run_parts(desk, repo, task_id, task, observer, command="plan", index_path=index)
        )
        made = make_plan(task_id, task, parts)
        ending = Ending() if made.plan else desk.record.write(ending_of, task_id, reason=made.reason)
        desk.end_task()
    reason = made.reason or f"see cra show {short_id(task_id)}"
    return (0 if made.plan else 1), made.plan, "; ".join((reason, *ending.sentences()))
