"""`cra prune`: show what uses disk space and what can be deleted; delete it with `--yes`."""

import re
from datetime import timedelta
from pathlib import Path

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.prune_removal import carry_out
from clean_room_agent.app.pruning import DISCARDED, KINDS, STATUSES, Choice, plan_pruning, site_of
from clean_room_agent.cli import options, output
from clean_room_agent.cli.safe_console import answers_console, sanitized
from clean_room_agent.cli.views.prune import as_object, render, verdict

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
