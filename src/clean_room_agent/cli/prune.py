"""`cra prune`: show what uses disk space and what can be deleted; delete it with `--yes`."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from clean_room_agent.app import wiring
from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.pruning import (
    DISCARDED,
    KINDS,
    STATUSES,
    Choice,
    Plan,
    carry_out,
    plan_pruning,
    site_of,
)
from clean_room_agent.artifacts.names import counted, first_line, short_id
from clean_room_agent.cli import options, output
from clean_room_agent.cli.safe_console import answers_console, sanitized
from clean_room_agent.json_values import to_shown
from clean_room_agent.report.byte_sizes import size_text
from clean_room_agent.report.runs import COLOURS, age

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


def render(plan: Plan, *, done: bool) -> list[RenderableType]:
    """What uses space, by kind and by run."""
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


AGE = re.compile(r"([0-9]{1,5})([hdw])\Z")
UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
HELP = f"""Show what uses disk space, and with --yes delete what can go. Nothing is deleted without --yes.

By default that is only what nobody needs: worktrees, copies and temporary folders that dead processes left. Select more by
age, status or kind; conditions are combined. A run in progress is never touched, and one that can be resumed only if
--status names it. The branch of a pruned run stays unless it is merged.

\b
cra prune                              what uses space
cra prune --older-than 30d --yes       everything of older runs that have ended, reports too
cra prune --status failed --yes        everything of failed runs
cra prune --kind refs --older-than 2w  what would be deleted in git

\b
Kinds:
{chr(10).join(f"  {kind:<13} {text}" for kind, text in KINDS.items())}

Exit codes: 0 done or shown, 1 the record or git refused, 2 usage.
"""


def _age(_context: click.Context, _parameter: click.Parameter, value: str | None) -> timedelta | None:
    if value is None:
        return None
    match = AGE.match(value)
    if match is None:
        raise click.BadParameter("write a number and h, d or w, such as 12h, 30d or 2w")
    return int(match[1]) * UNITS[match[2]]


@click.command(help=HELP)
@click.option(
    "--older-than", metavar="AGE", callback=_age, help="Started longer ago than this: 12h, 30d, 2w."
)
@click.option(
    "--status",
    "statuses",
    type=click.Choice(STATUSES),
    multiple=True,
    help=f"Only runs with this status, or {DISCARDED} ones. Repeatable. By default complete, failed and {DISCARDED}.",
)
@click.option(
    "--kind", "kinds", type=click.Choice(tuple(KINDS)), multiple=True, help="Only this kind. Repeatable."
)
@click.option("-y", "--yes", is_flag=True, help="Delete it.")
@options.repo_option
@options.json_option
def command(
    older_than: timedelta | None,
    statuses: tuple[str, ...],
    kinds: tuple[str, ...],
    yes: bool,
    repo: Path,
    as_json: bool,
) -> int:
    """The command."""
    workspace = output.opened(wiring.workspace_of(repo))
    site = site_of(workspace)
    plan = plan_pruning(site, Choice(older_than=older_than, statuses=statuses, kinds=kinds))
    notes = (*plan.notes, *(carry_out(site, plan) if yes else ()))
    if as_json:
        output.answer_json(as_object(plan, notes, done=yes))
    else:
        answers_console().print(*render(sanitized(plan), done=yes), sep="\n", highlight=False)
        for note in notes:
            output.answer(note)
        output.answer(verdict(plan, done=yes))
    return 0
