"""`cra prune`: what takes room, and what of it may go; taken away with `--yes`."""

import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clean_room_agent.artifacts.ids import short_id
from clean_room_agent.cli import options, output, wiring
from clean_room_agent.cli.clock import utc_now
from clean_room_agent.cli.neutral import neutral
from clean_room_agent.cli.pruning import (
    DISCARDED,
    KINDS,
    STATUSES,
    Choice,
    Plan,
    Site,
    carry_out,
    plan_pruning,
)
from clean_room_agent.cli.settings import Overrides, load_settings
from clean_room_agent.git.repository import open_repository
from clean_room_agent.report.runs import COLOURS, age, first_line
from clean_room_agent.report.sizes import size_text
from clean_room_agent.workspace import Workspace

if TYPE_CHECKING:
    from rich.console import RenderableType

AGE = re.compile(r"([0-9]{1,5})([hdw])\Z")
UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
SHOWN_RUNS = 20
HELP = f"""Say what takes room, and with --yes take away what may go. Nothing is taken without --yes.

Where nothing is chosen, that is what nothing is lost with: work trees, copies and temporary folders that dead processes
left. Choose more by age, status or kind; conditions add up. A run that is under way is never touched, one that can be
resumed only where --status names it. A pruned run's branch stays unless it is merged.

\b
cra prune                              what takes room
cra prune --older-than 30d --yes       all of ended runs that are older, reports too
cra prune --status failed --yes        all of failed runs
cra prune --kind refs --older-than 2w  what would go of git's

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
@click.option("--older-than", metavar="AGE", callback=_age, help="Begun longer ago: 12h, 30d, 2w.")
@click.option(
    "--status",
    "statuses",
    type=click.Choice(STATUSES),
    multiple=True,
    help=f"Runs that ended so, or were {DISCARDED}; several times. By default complete, failed and {DISCARDED}.",
)
@click.option(
    "--kind", "kinds", type=click.Choice(tuple(KINDS)), multiple=True, help="Only this; several times."
)
@click.option("-y", "--yes", is_flag=True, help="Take it away.")
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
    workspace = wiring.workspace_of(repo)
    site = _site(workspace)
    plan = plan_pruning(site, Choice(older_than=older_than, statuses=statuses, kinds=kinds))
    notes = (*plan.notes, *(carry_out(site, plan) if yes else ()))
    if as_json:
        output.answer_json(_as_object(plan, notes, done=yes))
    else:
        output.console().print(*_render(neutral(plan), done=yes), sep="\n", highlight=False)
        for note in notes:
            output.answer(note)
        output.answer(_verdict(plan, done=yes))
    return 0


def _site(workspace: Workspace) -> Site:
    settings = load_settings(workspace.config, Overrides(), optional=True)
    return Site(
        workspace=workspace,
        repo=open_repository(workspace.repo),
        worktrees=wiring.worktrees_folder(workspace, settings),
        cache=wiring.cache_folder() / "worktrees",
    )


def _as_object(plan: Plan, notes: tuple[str, ...], *, done: bool) -> dict[str, Any]:
    return {
        "done": done,
        "bytes": plan.size,
        "kinds": output.plain(plan.sizes),
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
        "others": output.plain(plan.others),
        "notes": notes,
    }


def _render(plan: Plan, *, done: bool) -> "list[RenderableType]":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("what", no_wrap=True)
    table.add_column("takes", justify="right", no_wrap=True)
    table.add_column("went" if done else "goes", justify="right", no_wrap=True)
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
                Text(f"and {len(plan.runs) - SHOWN_RUNS} more runs (--json names them all)", style="dim")
            )
    return [*parts, Text("")]


def _verdict(plan: Plan, *, done: bool) -> str:
    if not plan.pieces:
        return "nothing to take away; --older-than, --status and --kind choose more"
    if done:
        return f"{size_text(plan.size)} taken away"
    return f"nothing was taken away; {size_text(plan.size)} would go with --yes"
