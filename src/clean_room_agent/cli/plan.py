"""`cra plan`: write a plan for a task, to review and edit."""

import shlex
from pathlib import Path
from typing import IO

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.clock import process_began
from clean_room_agent.app.given_evidence import checked_evidence, places_of
from clean_room_agent.app.plan_run import run_plan
from clean_room_agent.app.settings import Overrides, load_settings
from clean_room_agent.artifacts.goals import NOTHING_GIVEN, GivenEvidence
from clean_room_agent.artifacts.plans import PlanArtifact
from clean_room_agent.cli import options, output
from clean_room_agent.cli.plan_editing import edit_plan, plan_in, require_editor
from clean_room_agent.cli.watching import watching
from clean_room_agent.errors import CraError, UsageError
from clean_room_agent.execute.plan_file import written_text
from clean_room_agent.file_contents import atomic_write
from clean_room_agent.workspace import Workspace

HELP = """Write a plan for TASK: its steps, each with the files to change. `cra solve --plan FILE` follows it.

\b
cra plan TASK -o plan.json                a plan to review; solve follows it as one step
cra plan TASK --edit -o plan.toml         the same, opened in your editor; solve follows it step by step
cra plan --plan plan.toml --edit          edit an existing plan; without --edit: validate and complete it

\b
Written by hand, a plan can be as short as this:
  task = "Splitting a bill loses cents"
  [[steps]]
  description = "Give the cents that are left over to the first people."
  files = ["till/money.py"]
Other keys of a step: symbols, depends_on, id. Other keys of the plan: rationale, files (for steps that name none), and
[evidence] with checks, tests and files, as --check, --test and --file give them. A file is modified if it exists and created otherwise, unless its name is nearly that of a file; {path = "old.py", role = "delete"} deletes one.

If the name of FILE ends in .toml, these steps are written, as you left them with --edit; otherwise the full plan in JSON.
Closing the editor without a change keeps the plan; an empty text discards it.

Exit codes: 0 a plan, 1 no plan, or it was discarded, 2 usage, or the file or the edited text is not a plan, 3 model server.
"""


@click.command(help=HELP)
@options.task_argument
@options.repo_option
@options.issue_option
@options.evidence_options
@options.budget_options
@click.option("-o", "--output", "target", type=options.OUTPUT_FILE, help="Write the plan to a file.")
@click.option("--plan", "plan_file", type=options.FILE, help="Use this plan; no model is asked.")
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
    evidence: GivenEvidence,
    overrides: Overrides,
    target: Path | None,
    plan_file: Path | None,
    edit: bool,
    events: IO[str] | None,
    as_json: bool,
    verbose: int,
) -> int:
    """The command."""
    workspace = output.opened(wiring.workspace_of(repo))
    makes = task is not None or issue is not None or evidence != NOTHING_GIVEN or overrides != Overrides()
    if plan_file is not None and makes:
        raise UsageError(
            "--plan uses an existing plan, with its own [evidence]: leave out TASK, --issue, --check, --test, --file, --stages and the budget"
        )
    if edit:
        require_editor()
    paths, plan, text = places_of(workspace), None, ""
    if plan_file is None:
        words = options.task_text(task, issue)
        plan = _make(workspace, overrides, words, checked_evidence(workspace, evidence), events, verbose)
    else:
        plan, text = plan_in(plan_file, paths, edit=edit)
        target = target or (plan_file if edit else None)
    own = target == plan_file and text != ""
    as_toml = own or (target is not None and target.suffix.lower() == ".toml")
    if plan is not None and (edit or as_toml):
        text = written_text(plan, paths)
    if edit or plan is None:
        text, plan = edit_plan(text, paths, written_from=plan)
    if target is not None:
        atomic_write(target, text if as_toml else f"{plan.model_dump_json(indent=2)}\n")
        follow = f"cra solve --plan {shlex.quote(str(target))}{output.repo_flag(workspace)}"
        output.aside(f"wrote {target}; follow it with: {follow}")
    if target is None or as_json:
        output.answer(plan.model_dump_json(indent=2))
    return 0


def _make(
    workspace: Workspace,
    overrides: Overrides,
    task: str,
    evidence: GivenEvidence,
    events: IO[str] | None,
    verbose: int,
) -> PlanArtifact:
    settings = load_settings(workspace.config, overrides)
    with watching(events, verbose=verbose, workspace=workspace) as observer:
        _, plan, reason = run_plan(
            workspace, settings, task, observer, entered_at=process_began(), evidence=evidence
        )
    if plan is None:
        raise CraError(f"no plan: {reason}", hint="rephrase the task, or name the files it is about")
    return plan
