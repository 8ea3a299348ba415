"""`cra plan`: write a plan for a task, to review and edit."""

import os
import shlex
import sys
import tempfile
from collections.abc import Collection
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
from clean_room_agent.cli.watching import watching
from clean_room_agent.errors import ArtifactError, CraError, UsageError
from clean_room_agent.execute.plan_file import is_toml, load_artifact, written_text
from clean_room_agent.file_contents import atomic_write, read_given
from clean_room_agent.workspace import Workspace

EDITORS = ("VISUAL", "EDITOR")


def require_editor() -> None:
    """Check that an editor can be opened.

    Raises:
        UsageError: there is no terminal, and no editor is configured that might work without one.
    """
    terminal = sys.stdin.isatty() and sys.stderr.isatty()
    if not terminal and not any(os.environ.get(name) for name in EDITORS):
        raise UsageError(
            "--edit needs a terminal, or an editor in $VISUAL or $EDITOR",
            hint="leave --edit out and edit the file that -o writes",
        )


def plan_in(path: Path, paths: Collection[str], *, edit: bool) -> tuple[PlanArtifact | None, str]:
    """The plan in a file, and the file's text if it is in TOML; of a text that will be edited, and need not be a plan yet,
    only that. `paths` are those in the tree.
    """
    text = read_given(path)
    by_hand = is_toml(text, str(path))
    plan = None if edit and by_hand else load_artifact(text, str(path), paths)
    return plan, text if by_hand else ""


def edit_plan(
    text: str, paths: Collection[str], written_from: PlanArtifact | None
) -> tuple[str, PlanArtifact]:
    """The text as the user's editor left it, and the plan in it; `paths` are those in the tree.

    A text that was `written_from` a plan and left as it was is that plan; an edited one has its task id, model and
    time. A text that is not accepted stays in a file that the error names.

    Raises:
        CraError: the text was left empty.
        ArtifactError: it is not a plan.
        UsageError: the editor failed.
    """
    handle, name = tempfile.mkstemp(prefix="cra-plan-", suffix=".toml")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    place = Path(name)
    kept = f"cra plan --plan {place} --edit -o FILE"
    try:
        click.edit(filename=name)
        edited = place.read_text(encoding="utf-8-sig")
    except click.ClickException as exc:
        hint = f"name another in $EDITOR; the plan is kept: {kept}"
        raise UsageError(exc.format_message(), hint=hint) from exc
    except (OSError, UnicodeDecodeError) as exc:
        raise UsageError(f"cannot read {place} after it was edited: {exc}") from exc
    if not edited.strip():
        place.unlink()
        raise CraError("the plan was left empty, so nothing was written")
    if written_from is not None and edited.rstrip() == text.rstrip():
        plan = written_from
    else:
        try:
            plan = load_artifact(edited, "the plan", paths)
        except ArtifactError as error:
            raise ArtifactError(error.message, hint=f"your text is in a file: {kept}") from error
        if written_from is not None:
            origin = {name: getattr(written_from, name) for name in ("task_id", "model", "created_at")}
            plan = plan.model_copy(update=origin)
    place.unlink()
    return edited, plan


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
    workspace = wiring.workspace_of(repo)
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
        plan, reason = run_plan(
            workspace, settings, task, observer, entered_at=process_began(), evidence=evidence
        )
    if plan is None:
        raise CraError(f"no plan: {reason}", hint="rephrase the task, or name the files it is about")
    return plan
