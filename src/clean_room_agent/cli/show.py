"""`cra show`: look into a run, down to a single prompt."""

import contextlib
from pathlib import Path
from typing import Any

import click

from clean_room_agent.app import wiring
from clean_room_agent.artifacts.names import NEWEST_RUN, split_place
from clean_room_agent.cli import options, output
from clean_room_agent.cli.paging import paged
from clean_room_agent.cli.views.show import WantedSections, chosen_sections, is_patch
from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.raw.runs import find_task
from clean_room_agent.errors import UsageError
from clean_room_agent.report.trace import choose, read_trace

HELP = """Look into RUN, or into one PLACE of it.

\b
RUN    a unique prefix of a run's id, or its branch; @ is the newest run (the default), @~1 the one before
PLACE  meta_plan    the pass that divides the task into parts
       part         all passes of a part
       part/step    a step: its attempts, and what followed
       part/step/2  its second attempt
       call:15      a model call

Other passes have the names that `cra show RUN` prints.
"""


@click.command(help=HELP)
@click.argument("where", type=options.RUN, metavar="[RUN[/PLACE]]", default=NEWEST_RUN)
@options.repo_option
@click.option("--prompt", is_flag=True, help="Each call's prompt.")
@click.option("--response", is_flag=True, help="Each call's answer, and how it was parsed.")
@click.option(
    "--why",
    "why",
    type=click.Path(),
    metavar="PATH[:LINE]|call:N[:LINE]",
    help="Why a file was shown, which call wrote a line of the result, or where a line of call N's prompt comes from.",
)
@click.option("--diff", is_flag=True, help="What changed.")
@click.option("--tests", is_flag=True, help="The results of each test run.")
@click.option("--budget", is_flag=True, help="Each call's tokens, compared with its window.")
@click.option("--time", is_flag=True, help="When the whole run did what, from Enter on.")
@click.option("--decisions", is_flag=True, help="Every candidate: included or not, and why.")
@click.option("--full", is_flag=True, help="With --tests: their whole output.")
@options.json_option
@options.exact_option
def command(where: str, repo: Path, as_json: bool, **flags: Any) -> int:
    """Print what the flags, those of `WantedSections`, ask for about the place that `where` names."""
    workspace = output.opened(wiring.workspace_of(repo))
    if not workspace.raw.exists():
        raise UsageError("nothing has been recorded here yet", hint="`cra solve` records the first run")
    wanted = WantedSections(**flags)
    run, place = split_place(where)
    with contextlib.closing(get_connection("raw", repo_path=workspace.repo, read_only=True)) as conn:
        trace = read_trace(conn, find_task(conn, run))
        sections = chosen_sections(conn, workspace, trace, choose(trace, place), wanted)
    if as_json:
        output.answer_json(
            {"task_id": trace.task_id, **{part.key: part.as_object(part.data) for part in sections}}
        )
        return 0
    if [part.key for part in sections] == ["diff"] and is_patch(sections[0].data):
        output.hand_on(sections[0].data[0].diff)
        return 0
    with paged() as console:
        for number, part in enumerate(sections):
            if number:
                console.print()
            console.print(part.show(), highlight=False)
    return 0
