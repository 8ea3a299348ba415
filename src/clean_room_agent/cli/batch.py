"""`cra batch`: solve many tasks from a JSON Lines file, several at a time; when run again, it continues."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clean_room_agent.app.package_extras import ENGINES, require_extras
from clean_room_agent.app.settings import Overrides
from clean_room_agent.cli import options, output
from clean_room_agent.cli.safe_console import answers_console, sanitized
from clean_room_agent.cli.views.batch import as_object, exit_code, line, progress, summary, table, verdict

if TYPE_CHECKING:
    from clean_room_agent.app.batch_tasks import BatchJob
    from clean_room_agent.app.batch_worker import JobOutcome
    from clean_room_agent.orchestrator.events import Event

HELP = """Solve the tasks in FILE (JSON Lines), --jobs at a time. Each is a run like one of `cra solve`: a branch with its record.

\b
{"task": "Splitting a bill loses cents"}
{"task": "Refuse negative amounts", "id": "negative", "repo": "../till"}
{"issue": "issues/17.md", "plan": "plans/17.json"}

\b
task   what to change, in words
issue  instead of task: a file with the words
id     a unique name for the summary; the line number by default
repo   the repository; that of --repo by default
plan   a plan to follow, as with `cra solve --plan`
check  what fails now and must hold at the end, as with `cra solve --check`; a text or a list of texts, as the next two
test   a test that fails now and must pass at the end, as with `cra solve --test`
file   the only file to change, besides tests, as with `cra solve --file`

Paths are relative to the folder of FILE. Each run starts from its repository's files as they are at that time, and your
files are not touched. All lines are validated before anything starts.

Run again, the same command skips what has ended and continues what was interrupted: the run of a line is identified by
repository, id and words, and by --name. Ctrl-C stops all runs in progress, as it stops a single solve. --json prints a line
for each task as it ends, then one {"summary": ...}.

Exit codes: 0 all complete, 130 interrupted, else the most serious of 2 usage or configuration, 3 model server or window,
1 failed, 4 partial or stuck, 5 unproven.
"""


@click.command(help=HELP)
@click.argument("tasks", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option("--jobs", type=options.number(1), default=1, show_default=True, help="Runs at a time.")
@click.option(
    "--name", help="Name of the batch; under another name, everything is done again. FILE's name by default."
)
@click.option("--retry", is_flag=True, help="Also continue runs that failed or are partial.")
@click.option(
    "--engine", type=click.Choice(ENGINES), default="local", help="local: processes here; ray: a cluster."
)
@options.repo_option
@options.budget_options
@options.attempt_options
@options.json_option
@options.notify_option
@options.exact_option
def command(
    tasks: Path,
    jobs: int,
    name: str | None,
    retry: bool,
    engine: str,
    repo: Path,
    overrides: Overrides,
    as_json: bool,
) -> int:
    """The command."""
    from clean_room_agent.app.batch_engine import run_jobs
    from clean_room_agent.app.batch_tasks import read_jobs

    if engine == "ray":
        require_extras("cluster")
    batch = read_jobs(tasks, repo=repo, batch=name or tasks.stem, overrides=overrides, retry=retry)
    outcomes: list[JobOutcome] = []
    for outcome in run_jobs(batch, engine=engine, parallel=jobs, watch=_tell_event):
        outcomes.append(outcome)
        if as_json:
            output.answer_json_line(as_object(outcome))
        else:
            output.aside(line(outcome))
    code = exit_code(batch, outcomes)
    if as_json:
        output.answer_json_line({"summary": summary(batch, outcomes, code)})
    else:
        answers_console().print(table(sanitized(tuple(outcomes))), highlight=False)
        output.answer(verdict(summary(batch, outcomes, code)))
    return code


def _tell_event(job: "BatchJob", event: "Event | None") -> None:
    """Print that the job has begun, if there is no `event`, or what that says."""
    for text in progress(job, event):
        output.aside(f"{job.name}: {text}")
