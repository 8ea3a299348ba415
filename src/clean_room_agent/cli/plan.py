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
from clean_room_agent.artifacts.goals import GivenEvidence
from clean_room_agent.cli import options, output
from clean_room_agent.cli.watching import watching
from clean_room_agent.errors import CraError
from clean_room_agent.execute.plan_file import written_text
from clean_room_agent.file_contents import atomic_write

HELP = """Write a plan for TASK: its steps, each with the files to change. `cra solve --plan FILE` follows it.

\b
cra plan TASK -o plan.json                a plan to review; solve follows it as one step
cra plan TASK -o plan.toml                its steps alone, to edit; solve follows them one by one

\b
Written by hand, a plan can be as short as this:
  task = "Splitting a bill loses cents"
  [[steps]]
  description = "Give the cents that are left over to the first people."
  files = ["till/money.py"]
Other keys of a step: symbols, depends_on, id. Other keys of the plan: rationale, files (for steps that name none), and
[evidence] with checks, tests and files, as --check, --test and --file give them. A file is modified if it exists and created otherwise, unless its name is nearly that of a file; {path = "old.py", role = "delete"} deletes one.

Exit codes: 0 a plan, 1 no plan, 2 usage, 3 model server.
"""


@click.command(help=HELP)
@options.task_argument
@options.repo_option
@options.issue_option
@options.evidence_options
@options.budget_options
@click.option("-o", "--output", "target", type=options.OUTPUT_FILE, help="Write the plan to a file.")
@options.events_option
@options.json_option
@options.exact_option
@options.verbose_option
def command(
    task: str | None,
    repo: Path,
    issue: IO[str] | None,
    evidence: GivenEvidence,
    overrides: Overrides,
    target: Path | None,
    events: IO[str] | None,
    as_json: bool,
    verbose: int,
) -> int:
    """The command."""
    workspace = wiring.workspace_of(repo)
    words = options.task_text(task, issue)
    evidence = checked_evidence(workspace, evidence)
    settings = load_settings(workspace.config, overrides)
    with watching(events, verbose=verbose, workspace=workspace) as observer:
        plan, reason = run_plan(
            workspace, settings, words, observer, entered_at=process_began(), evidence=evidence
        )
    if plan is None:
        raise CraError(f"no plan: {reason}", hint="rephrase the task, or name the files it is about")
    if target is not None:
        by_hand = target.suffix.lower() == ".toml"
        text = written_text(plan, places_of(workspace)) if by_hand else plan.model_dump_json(indent=2) + "\n"
        atomic_write(target, text)
        follow = f"cra solve --plan {shlex.quote(str(target))}{output.repo_flag(workspace)}"
        output.aside(f"wrote {target}; follow it with: {follow}")
    if target is None or as_json:
        output.answer(plan.model_dump_json(indent=2))
    return 0
