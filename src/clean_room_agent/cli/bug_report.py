"""`cra bug-report`: collect what a maintainer needs in one file, without secrets; nothing is sent."""

import json
from pathlib import Path

import click

from clean_room_agent.app.bug_report import HOLDS, make_report
from clean_room_agent.artifacts.names import NEWEST_RUN, counted
from clean_room_agent.cli import options, output
from clean_room_agent.errors import UsageError
from clean_room_agent.file_contents import atomic_write

LEFT_OUT = """\
Not in it: your files, your name, and, without --prompts, any
text of the run: the task, prompts, answers, diffs, the output
of tests, names, errors.
"""
SENT = "Nothing was sent. Read it before you give it to anyone."


@click.command(name="bug-report")
@click.argument("run", type=options.RUN, metavar="[RUN]", default=NEWEST_RUN)
@options.repo_option
@click.option(
    "-o",
    "--output",
    "place",
    type=options.OUTPUT_FILE,
    help="Where to write it; in .clean_room/reports by default.",
)
@click.option(
    "--prompts",
    is_flag=True,
    help="Include the texts of the run: prompts, answers, diffs, output of tests, errors: your code.",
)
@options.json_option
def command(run: str, repo: Path, place: Path | None, prompts: bool, as_json: bool) -> int:
    """Collect what a maintainer needs in one JSON file, and list what is in it. Nothing is sent.

    Versions, platform, sandbox, configuration with the source of each value, places of saved tracebacks; and of RUN (the newest
    by default, if there is one) its events, outcomes and calls without their texts. What looks like a secret, what has a
    secret's name, and the values of such environment variables are replaced; your home directory is written as ~.

    Exit codes: 0 written, 2 there is no such run, or the file cannot be written.
    """
    if place is not None and place.exists():
        raise UsageError(f"{place} already exists", hint="name another file: -o FILE")
    made = make_report(repo, run, prompts=prompts)
    path = place or made.default_place
    atomic_write(path, made.text, private=True)
    replaced = made.secrets_replaced
    if as_json:
        told = {
            "path": str(path),
            "task_id": made.task_id,
            "parts": {name: HOLDS[name] for name in made.parts},
        }
        output.answer_json({**told, "secrets_replaced": replaced, "sent": False})
        return 0
    sizes = {name: len(json.dumps(part)) / 1000 for name, part in made.parts.items()}
    lines = [f"  {name} ({size:,.1f} kB)\n      {HOLDS[name]}" for name, size in sizes.items()]
    count = f"{counted(replaced, 'secret was', 'secrets were')} replaced.\n" if replaced else ""
    output.answer(f"{path}\n\n" + "\n".join(lines) + f"\n\n{LEFT_OUT}\n{count}{SENT}")
    return 0
