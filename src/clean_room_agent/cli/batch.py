"""`cra batch`: many solves, several at a time, from a file of JSON lines; started again, it goes on where it ended."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clean_room_agent.artifacts.ids import short_id
from clean_room_agent.cli import options, output
from clean_room_agent.cli.extras import ENGINES, require_extras
from clean_room_agent.cli.neutral import neutral
from clean_room_agent.cli.settings import Overrides
from clean_room_agent.report.runs import COLOURS, first_line

if TYPE_CHECKING:
    from rich.table import Table

    from clean_room_agent.cli.batch_tasks import BatchJob
    from clean_room_agent.cli.batch_worker import JobOutcome

INTERRUPTED = 130
GRAVEST = (2, 3, 1, 4)
"""Exit codes of runs, the one first that becomes the batch's."""
HELP = """Solve the tasks of FILE, a line of JSON each, --jobs at a time. Each run is as one of `cra solve`: a branch with its record.

\b
{"task": "Splitting a bill loses cents"}
{"task": "Refuse negative amounts", "id": "negative", "repo": "../till"}
{"issue": "issues/17.md", "plan": "plans/17.json"}

\b
task   what is to be changed, in words
issue  in place of task: a file that holds the words
id     the task's name in the summary, unique; the line's number by default
repo   its repository; that of --repo by default
plan   a plan to follow, as `cra solve --plan` does

Paths are relative to FILE's folder. A run begins from its repository's files as they stand then, and your files stay as
they are. All lines are checked before anything starts.

Started again, what has ended is not done again and what was interrupted goes on: a line's run is known by its repository,
id and words, and by --name. Ctrl-C ends the runs under way as it ends one solve. With --json, a line for each task as it ends,
then one {"summary": ...}.

Exit codes: 0 all complete; 130 interrupted; else the gravest of 2 usage or configuration, 3 model server or window, 1 failed,
4 partial or stuck.
"""


@click.command(help=HELP)
@click.argument("tasks", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Runs at a time.")
@click.option("--name", help="Of the batch: by another name, all is done anew. FILE's by default.")
@click.option("--retry", is_flag=True, help="Go on with runs that failed or are partial, too.")
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
    stages: str | None,
    context_window: int | None,
    reserved_tokens: int | None,
    budget_config: Path | None,
    max_attempts: int | None,
    max_refinement_loops: int | None,
    samples: int | None,
    as_json: bool,
) -> int:
    """The command."""
    from clean_room_agent.cli.batch_tasks import read_jobs

    if engine == "ray":
        require_extras("cluster")
    overrides = Overrides(
        context_window=context_window,
        reserved_tokens=reserved_tokens,
        budget_config=budget_config.absolute() if budget_config else None,
        stages=stages,
        max_attempts=max_attempts,
        max_refinement_loops=max_refinement_loops,
        samples=samples,
    )
    batch = read_jobs(tasks, repo=repo, batch=name or tasks.stem, overrides=overrides, retry=retry)
    outcomes: list[JobOutcome] = []
    for outcome in _outcomes(engine, jobs, batch):
        outcomes.append(outcome)
        if as_json:
            output.answer_json_line(_as_object(outcome))
        else:
            output.aside(_line(outcome))
    code = _exit_code(batch, outcomes)
    if as_json:
        output.answer_json_line({"summary": _summary(batch, outcomes, code)})
    else:
        output.console().print(_table(neutral(tuple(outcomes))), highlight=False)
        output.answer(_verdict(_summary(batch, outcomes, code)))
    return code


def _outcomes(engine: str, jobs: int, batch: "Sequence[BatchJob]") -> "Iterator[JobOutcome]":
    from clean_room_agent.cli.batch_worker import solve_job

    if engine == "ray":
        from clean_room_agent.training.cluster import call_on_ray

        return call_on_ray(solve_job, batch, jobs)
    from clean_room_agent.cli.batch_engine import LocalEngine

    return LocalEngine(jobs, _tell_begun).run(batch)


def _tell_begun(job: "BatchJob") -> None:
    output.aside(f"{job.name}: {short_id(job.task_id)}  {first_line(job.task)}")


def _exit_code(batch: "Sequence[BatchJob]", outcomes: "Sequence[JobOutcome]") -> int:
    codes = {outcome.exit_code for outcome in outcomes}
    if INTERRUPTED in codes or len(outcomes) < len(batch):
        return INTERRUPTED
    return next((code for code in GRAVEST if code in codes), 0)


def _as_object(outcome: "JobOutcome") -> dict[str, Any]:
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


def _summary(batch: "Sequence[BatchJob]", outcomes: "Sequence[JobOutcome]", code: int) -> dict[str, Any]:
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


def _line(outcome: "JobOutcome") -> str:
    told = outcome.error or outcome.detail.get("reason", "") or outcome.detail.get("branch", "")
    before = " (as an earlier start left it)" if outcome.how == "known" else ""
    status = outcome.status.replace("_", " ")
    return f"{outcome.job.name}: {status}{before}" + (f": {first_line(told)}" if told else "")


def _table(outcomes: "Sequence[JobOutcome]") -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for column in ("id", "run", "status"):
        table.add_column(column, overflow="fold")
    table.add_column("task, branch, reason", overflow="fold")
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


def _verdict(summary: dict[str, Any]) -> str:
    counted = [f"{count} {status.replace('_', ' ')}" for status, count in summary["statuses"].items()]
    if summary["not_begun"]:
        counted.append(f"{summary['not_begun']} not begun")
    told = f"\n{summary['tasks']} tasks: {', '.join(counted)}"
    if summary["calls"]:
        told += f"; {summary['calls']:,} calls, {summary['tokens']:,} tokens"
    if summary["exit_code"] == INTERRUPTED:
        told += "\ngo on with: the same command"
    elif summary["exit_code"] in {1, 4}:
        told += "\ngo on with those that are not complete: the same command with --retry"
    return told
