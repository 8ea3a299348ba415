"""`cra solve`: do a whole run, or continue one."""

import sys
from pathlib import Path
from typing import IO

import click
from msgspec import structs

from clean_room_agent.app import wiring
from clean_room_agent.app.clock import process_began
from clean_room_agent.app.settings import Overrides, flags_text, load_settings
from clean_room_agent.app.solving import SolveRequest, as_object, plan_given, request_again, run_solve
from clean_room_agent.artifacts.goals import NOTHING_GIVEN, GivenEvidence
from clean_room_agent.cli import options, output
from clean_room_agent.cli.safe_console import answers_console, progress_console, sanitized
from clean_room_agent.cli.watching import watching
from clean_room_agent.errors import UsageError
from clean_room_agent.report.summary import render


@click.command()
@options.task_argument
@options.repo_option
@options.issue_option
@options.evidence_options
@options.budget_options
@click.option(
    "--plan",
    "plan_file",
    type=options.FILE,
    help="Follow a plan: one by `cra plan` as a single step, one with steps of your own step by step.",
)
@click.option("--meta-plan", "meta_file", type=options.FILE, help="Start with the parts of a reviewed plan.")
@click.option(
    "--apply",
    "apply_result",
    is_flag=True,
    help="Apply the result to the working tree, unless something fails in it.",
)
@click.option(
    "--resume",
    "resumed",
    type=options.RUN,
    metavar="RUN",
    help="Continue a run that was interrupted or is partial.",
)
@click.option("--hint", metavar="TEXT", help="With --resume: something to tell every pass from here on.")
@options.attempt_options
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
    plan_file: Path | None,
    meta_file: Path | None,
    apply_result: bool,
    resumed: str | None,
    hint: str | None,
    events: IO[str] | None,
    as_json: bool,
    verbose: int,
) -> int:
    """Solve TASK: make a branch cra/<id> whose tests pass, with a complete record. Your working tree is not touched.

    A result is complete once a test that failed shows it: one of yours, one that TASK's words give, or --check. Exit codes: 0
    complete, 1 failed, 2 usage or configuration, 3 model server or window, 4 partial or waiting for you, 5 unproven (nothing
    fails, and nothing shows that the task is done).
    """
    workspace = wiring.workspace_of(repo)
    task_id: str | None = None
    if resumed is not None:
        if (
            task is not None
            or issue is not None
            or plan_file is not None
            or meta_file is not None
            or evidence != NOTHING_GIVEN
        ):
            raise UsageError(
                "--resume continues the run's own task, plan and checks: leave out TASK, --issue, --plan, --meta-plan, "
                "--check, --test and --file",
                hint="use --hint to add something",
            )
        task_id, request, overrides = request_again(workspace, resumed, overrides, hint=hint or "")
        request = structs.replace(request, apply=apply_result)
    else:
        if hint is not None:
            raise UsageError("--hint needs --resume", hint="put it into the task itself")
        given, planned_task = plan_given(workspace, plan_file, meta_file, evidence)
        words = (
            planned_task
            if task is None and issue is None and planned_task
            else options.task_text(task, issue)
        )
        flags = flags_text(overrides)
        request = SolveRequest(task=words, given=given, apply=apply_result, flags=flags)
    settings = load_settings(workspace.config, overrides)
    with watching(events, verbose=verbose, workspace=workspace) as observer:
        code, summary = run_solve(
            workspace, settings, request, observer, task_id=task_id, entered_at=process_began()
        )
    if as_json:
        output.answer_json(as_object(summary))
    else:
        # Standard output is then for events alone: in a text of the repository, a line could look like one.
        console = progress_console() if events is sys.stdout else answers_console()
        console.print(
            render(sanitized(summary), output.elsewhere(workspace)), highlight=False, soft_wrap=True
        )
    return code
