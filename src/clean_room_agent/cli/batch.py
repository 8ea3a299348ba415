"""`cra batch`: solve many tasks from a JSON Lines file, several at a time; when run again, it continues."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from clean_room_agent.app.batch import INTERRUPTED, BatchJob, JobOutcome, read_jobs, run_jobs
from clean_room_agent.app.package_extras import ENGINES, require_extras
from clean_room_agent.app.settings import Overrides
from clean_room_agent.artifacts.names import counted, first_line, short_id
from clean_room_agent.cli import options, output
from clean_room_agent.cli.safe_console import answers_console, sanitized
from clean_room_agent.orchestrator.events import Event, PassStarted
from clean_room_agent.report.live import permanent_lines
from clean_room_agent.report.run_list import COLOURS, plain_table

GRAVEST = (2, 3, 1, 4, 5)
"""Exit codes of runs, the most serious first, which becomes the batch's."""


def exit_code(batch: Sequence[BatchJob], outcomes: Sequence[JobOutcome]) -> int:
    """130 if the batch was interrupted, otherwise the most serious of its tasks."""
    codes = {outcome.exit_code for outcome in outcomes}
    if INTERRUPTED in codes or len(outcomes) < len(batch):
        return INTERRUPTED
    return next((code for code in GRAVEST if code in codes), 0)


def as_object(outcome: JobOutcome) -> dict[str, Any]:
    """One task's outcome as `--json` answers it."""
    told: dict[str, Any] = {
        "id": outcome.job.name,
        "line": outcome.job.line,
        "repo": str(outcome.job.repo),
        "task_id": outcome.job.task_id,
        "status": outcome.status,
        "exit_code": outcome.exit_code,
        "how": outcome.how,
        **outcome.detail,
    }
    return {**told, "error": outcome.error, "hint": outcome.hint} if outcome.error else told


def summary(batch: Sequence[BatchJob], outcomes: Sequence[JobOutcome], code: int) -> dict[str, Any]:
    """All outcomes in numbers."""

    def total(key: str) -> float:
        values: list[float] = [outcome.detail.get(key, 0) for outcome in outcomes]
        return sum(values)

    statuses = [outcome.status for outcome in outcomes]
    return {
        "tasks": len(batch),
        "statuses": {status: statuses.count(status) for status in sorted({*statuses})},
        "not_begun": len(batch) - len(outcomes),
        "known": sum(outcome.how == "known" for outcome in outcomes),
        "calls": total("calls"),
        "tokens": total("tokens"),
        "seconds": round(total("seconds"), 3),
        "exit_code": code,
    }


def progress(job: BatchJob, event: Event | None) -> list[str]:
    """What is printed of an event of the job; None: it has begun."""
    if event is None:
        return [f"{short_id(job.task_id)}  {first_line(job.task)}"]
    if isinstance(event, PassStarted):
        return [f"  … {event.title}"]
    return [text.plain for text in permanent_lines(event)]


def line(outcome: JobOutcome) -> str:
    """An outcome in one line."""
    told = outcome.error or outcome.detail.get("reason", "") or outcome.detail.get("branch", "")
    before = " (from an earlier start)" if outcome.how == "known" else ""
    status = outcome.status.replace("_", " ")
    return f"{outcome.job.name}: {status}{before}" + (f": {first_line(told)}" if told else "")


def table(outcomes: Sequence[JobOutcome]) -> Table:
    """A table of all outcomes, in the order of the file."""
    columns = ("id", "run", "status", "task, branch, reason")
    table = plain_table(*columns, folded=columns)
    for outcome in sorted(outcomes, key=lambda outcome: outcome.job.line):
        told = Text(first_line(outcome.job.task))
        for text in (
            outcome.detail.get("branch", ""),
            outcome.detail.get("reason", ""),
            outcome.error,
            outcome.hint,
        ):
            if text:
                told.append(f"\n{first_line(text)}", style="dim")
        status = Text(outcome.status.replace("_", " "), style=COLOURS.get(outcome.status, "cyan"))
        table.add_row(outcome.job.name, Text(short_id(outcome.job.task_id), style="bold"), status, told)
    return table


def verdict(summary: dict[str, Any]) -> str:
    """The last lines: how many tasks ended in which way, and the next command."""
    ended = [
        counted(count, "error") if status == "error" else f"{count} {status.replace('_', ' ')}"
        for status, count in summary["statuses"].items()
    ]
    if summary["not_begun"]:
        ended.append(f"{summary['not_begun']} not started")
    told = f"\n{counted(summary['tasks'], 'task')}: {', '.join(ended)}"
    if summary["calls"]:
        told += f"; {counted(summary['calls'], 'call')}, {counted(summary['tokens'], 'token')}"
    if summary["exit_code"] == INTERRUPTED:
        told += "\ncontinue with: the same command"
    elif summary["exit_code"] in {1, 4}:
        told += "\nto continue those that are not complete: the same command with --retry"
    elif summary["exit_code"] == 5:
        told += '\nnothing shows that the unproven ones are done: look at them, or give their lines a "check"'
    return told


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
    if engine == "ray":
        require_extras("cluster")
    batch = read_jobs(tasks, repo=repo, batch=name or tasks.stem, overrides=overrides, retry=retry)
    outcomes: list[JobOutcome] = []
    for outcome in run_jobs(batch, engine=engine, parallel=jobs, watch=_tell_event):
        outcomes.append(outcome)
        if as_json:
            output.answer_json(as_object(outcome), line=True)
        else:
            output.aside(line(outcome))
    code = exit_code(batch, outcomes)
    if as_json:
        output.answer_json({"summary": summary(batch, outcomes, code)}, line=True)
    else:
        answers_console().print(table(sanitized(tuple(outcomes))), highlight=False)
        output.answer(verdict(summary(batch, outcomes, code)))
    return code


def _tell_event(job: BatchJob, event: Event | None) -> None:
    """Print that the job has begun, if there is no `event`, or what that says."""
    for text in progress(job, event):
        output.aside(f"{job.name}: {text}")
