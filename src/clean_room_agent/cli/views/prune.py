"""How `cra prune` prints what uses space and what is deleted."""

from typing import TYPE_CHECKING, Any

from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.pruning import (
    KINDS,
    Plan,
)
from clean_room_agent.artifacts.names import counted, first_line, short_id
from clean_room_agent.json_values import to_shown
from clean_room_agent.report.byte_sizes import size_text
from clean_room_agent.report.runs import COLOURS, age

if TYPE_CHECKING:
    from rich.console import RenderableType

SHOWN_RUNS = 20


def as_object(plan: Plan, notes: tuple[str, ...], *, done: bool) -> dict[str, Any]:
    """The plan as `--json` answers it."""
    return {
        "done": done,
        "bytes": plan.size,
        "kinds": to_shown(plan.sizes),
        "runs": [
            {
                "task_id": run.task_id,
                "status": run.status,
                "bytes": run.size,
                "kinds": sorted({piece.kind for piece in run.pieces}),
                "warning": run.warning,
            }
            for run in plan.runs
        ],
        "others": to_shown(plan.others),
        "notes": notes,
    }


def render(plan: Plan, *, done: bool) -> "list[RenderableType]":
    """What uses space, by kind and by run."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("what", no_wrap=True)
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("deleted" if done else "deletable", justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for each in plan.sizes:
        goes = Text(size_text(each.goes) if each.count else "-", style="bold" if each.count else "dim")
        table.add_row(each.kind, size_text(each.takes), goes, Text(KINDS[each.kind], style="dim"))
    parts: list[RenderableType] = [table]
    if plan.runs:
        runs = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
        for column in ("run", "age", "status", "size"):
            runs.add_column(column, no_wrap=True, justify="right" if column in {"age", "size"} else "left")
        runs.add_column("task", overflow="fold")
        now = utc_now()
        for run in plan.runs[:SHOWN_RUNS]:
            told = Text(first_line(run.task_description) or run.command)
            if run.warning:
                told.append(f"\n{run.warning}", style="yellow")
            status = Text(run.status.replace("_", " "), style=COLOURS.get(run.status, "cyan"))
            runs.add_row(short_id(run.task_id), age(run.timestamp, now), status, size_text(run.size), told)
        parts += [Text(""), runs]
        if len(plan.runs) > SHOWN_RUNS:
            parts.append(
                Text(
                    f"and {counted(len(plan.runs) - SHOWN_RUNS, 'more run')} (--json lists all)", style="dim"
                )
            )
    return [*parts, Text("")]


def verdict(plan: Plan, *, done: bool) -> str:
    """What was deleted, or would be."""
    if not plan.pieces:
        return "nothing to delete; select more with --older-than, --status and --kind"
    if done:
        return f"{size_text(plan.size)} deleted"
    return f"nothing was deleted; {size_text(plan.size)} would be deleted with --yes"
