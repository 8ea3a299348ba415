"""`cra prune`: show what uses disk space and what can be deleted; delete it with `--yes`."""

import re
from datetime import timedelta
from pathlib import Path

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.prune_removal import carry_out
from clean_room_agent.app.pruning import DISCARDED, KINDS, STATUSES, Choice, plan_pruning, site_of
from clean_room_agent.cli import options, output
from clean_room_agent.cli.sanitized import sanitized
from clean_room_agent.cli.views.prune import as_object, render, verdict

AGE = re.compile(r"([0-9]{1,5})([hdw])\Z")
UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
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
    site = site_of(workspace)
    plan = plan_pruning(site, Choice(older_than=older_than, statuses=statuses, kinds=kinds))
    notes = (*plan.notes, *(carry_out(site, plan) if yes else ()))
    if as_json:
        output.answer_json(as_object(plan, notes, done=yes))
    else:
        output.console().print(*render(sanitized(plan), done=yes), sep="\n", highlight=False)
        for note in notes:
            output.answer(note)
        output.answer(verdict(plan, done=yes))
    return 0
