"""`cra bug-report`: one file with what a maintainer needs, without secrets; nothing is sent anywhere."""

from pathlib import Path

import click

from clean_room_agent.app.bug_report import (
    Part,
    _default_place,
    _parts,
    _record,
    _redactor,
    _run_parts,
    _task,
    _text,
    _workspace,
    archive,
    cleaner,
    listing,
    readme,
)
from clean_room_agent.artifacts.ids import NEWEST_RUN
from clean_room_agent.atomic_write import atomic_write
from clean_room_agent.cli import options, output
from clean_room_agent.errors import RecordError, SchemaError, UsageError
from clean_room_agent.report.values import change_texts

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
    workspace, why_not = _workspace(repo)
    redactor = _redactor(workspace)
    clean = cleaner(redactor, workspace)
    parts = [*_parts(repo, workspace, why_not)]
    task_id = None
    try:
        with _record(workspace) as conn:
            task_id = None if conn is None else _task(conn, run)
            parts += _run_parts(conn, task_id, prompts=prompts)
    except (RecordError, SchemaError) as error:
        parts.append(
            Part(name="record.txt", holds="why the record cannot be read", value=f"{error.message}\n")
        )
    files = [(part, _text(change_texts(part.value, clean))) for part in parts]
    path = place or _default_place(workspace, task_id)
    data = archive([("README.txt", readme(files)), *((part.name, text) for part, text in files)])
    atomic_write(path, data, private=True)
    if as_json:
        told = [{"name": part.name, "bytes": len(text.encode()), "holds": part.holds} for part, text in files]
        output.answer_json(
            {
                "path": str(path),
                "task_id": task_id,
                "files": told,
                "secrets_replaced": redactor.count,
                "sent": False,
            }
        )
        return 0
    count = (
        f"{redactor.count} secret{' was' if redactor.count == 1 else 's were'} replaced.\n"
        if redactor.count
        else ""
    )
    output.answer(f"{path}\n\n{listing(files)}\n\n{LEFT_OUT}\n{count}{SENT}")
    return 0
