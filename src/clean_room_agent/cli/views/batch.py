"""How `cra batch` prints the outcome of each task and of the batch."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from clean_room_agent.artifacts.names import counted, first_line, short_id
from clean_room_agent.report.runs import COLOURS

if TYPE_CHECKING:
    from rich.table import Table

    from clean_room_agent.app.batch_tasks import BatchJob
    from clean_room_agent.app.batch_worker import JobOutcome
    from clean_room_agent.orchestrator.events import Event

INTERRUPTED = 130


GRAVEST = (2, 3, 1, 4, 5)
"""Exit codes of runs, the most serious first, which becomes the batch's."""


def exit_code(batch: "Sequence[BatchJob]", outcomes: "Sequence[JobOutcome]") -> int:
    """130 if the batch was interrupted, otherwise the most serious of its tasks."""
    codes = {outcome.exit_code for outcome in outcomes}
    if INTERRUPTED in codes or len(outcomes) < len(batch):
        return INTERRUPTED
    return next((code for code in GRAVEST if code in codes), 0)


def as_object(outcome: "JobOutcome") -> dict[str, Any]:
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


def summary(batch: "Sequence[BatchJob]", outcomes: "Sequence[JobOutcome]", code: int) -> dict[str, Any]:
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


def progress(job: "BatchJob", event: "Event | None") -> list[str]:
    """What is printed of an event of the job; None: it has begun."""
    from clean_room_agent.orchestrator.events import PassStarted
    from clean_room_agent.report.live import permanent_lines

    if event is None:
        return [f"{short_id(job.task_id)}  {first_line(job.task)}"]
    if isinstance(event, PassStarted):
        return [f"  … {event.title}"]
    return [text.plain for text in permanent_lines(event)]


def line(outcome: "JobOutcome") -> str:
    """An outcome in one line."""
    told = outcome.error or outcome.detail.get("reason", "") or outcome.detail.get("branch", "")
    before = " (from an earlier start)" if outcome.how == "known" else ""
    status = outcome.status.replace("_", " ")
    return f"{outcome.job.name}: {status}{before}" + (f": {first_line(told)}" if told else "")


def table(outcomes: "Sequence[JobOutcome]") -> "Table":
    """A table of all outcomes, in the order of the file."""
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


def verdict(summary: dict[str, Any]) -> str:
    """The last lines: how many tasks ended in which way, and the next command."""
    ended = [f"{count} {status.replace('_', ' ')}" for status, count in summary["statuses"].items()]
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
