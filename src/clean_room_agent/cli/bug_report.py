"""`cra bug-report`: collect what a maintainer needs in one file, without secrets; nothing is sent."""

from pathlib import Path

import click

from clean_room_agent.app.bug_report import archive, listing, make_report
from clean_room_agent.artifacts.ids import NEWEST_RUN
from clean_room_agent.atomic_write import atomic_write
from clean_room_agent.cli import options, output
from clean_room_agent.errors import UsageError

LEFT_OUT = """\
Not in it: your files, your name, the machine's name, and,
without --prompts, the task's words, prompts, answers,
diffs and what tests printed.
"""
SENT = """\
Nothing was sent. Read it before you give it to anybody:
  python3 -m zipfile -e FILE FOLDER"""


@click.command(name="bug-report")
@click.argument("run", type=options.RUN, metavar="[RUN]", default=NEWEST_RUN)
@options.repo_option
@click.option(
    "-o",
    "--output",
    "place",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where to write it; by default in .clean_room/reports.",
)
@click.option(
    "--prompts", is_flag=True, help="Also prompts, answers, diffs and the tests' output: your code."
)
@options.json_option
def command(run: str, repo: Path, place: Path | None, prompts: bool, as_json: bool) -> int:
    """Collect what a maintainer needs into one file, and say what is in it. Nothing is sent.

    Versions, platform, sandbox, configuration with the source of each value, kept tracebacks; of RUN (by default the
    newest; none where there is none) its events, outcomes and calls without their texts. What looks like a secret, what
    stands under a name of one, and the values of such variables of the environment are replaced; your home folder is
    written as ~.

    Ends with 0; 2 where there is no such run, or the file cannot be written.
    """
    if place is not None and place.exists():
        raise UsageError(f"{place} is there already", hint="name another file: -o FILE")
    made = make_report(repo, run, prompts=prompts)
    path = place or made.default_place
    atomic_write(path, archive(made.files), private=True)
    if as_json:
        told = [
            {"name": part.name, "bytes": len(text.encode()), "holds": part.holds} for part, text in made.files
        ]
        output.answer_json(
            {
                "path": str(path),
                "task_id": made.task_id,
                "files": told,
                "secrets_replaced": made.secrets_replaced,
                "sent": False,
            }
        )
        return 0
    count = (
        f"{made.secrets_replaced} secret{' was' if made.secrets_replaced == 1 else 's were'} replaced.\n"
        if made.secrets_replaced
        else ""
    )
    output.answer(f"{path}\n\n{listing(made.files)}\n\n{LEFT_OUT}\n{count}{SENT}")
    return 0
