"""`cra bug-report`: collect what a maintainer needs in one JSON file, without secrets and names; nothing is sent.

Of a run only the fields that are listed here are included; no server is asked.
"""

import contextlib
import json
import os
import platform
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import click
from pydantic_core import to_jsonable_python

from clean_room_agent import safe_open
from clean_room_agent.app import wiring
from clean_room_agent.app.config_values import list_values
from clean_room_agent.app.self_check import as_object, local_checks, sandbox_line
from clean_room_agent.app.tracebacks import places_in
from clean_room_agent.artifacts.names import NEWEST_RUN, counted, short_id
from clean_room_agent.cli import options, output
from clean_room_agent.db.connection import read_record
from clean_room_agent.db.raw.runs import find_task
from clean_room_agent.errors import ConfigError, CraError, RecordError, SchemaError, UsageError
from clean_room_agent.file_contents import atomic_write
from clean_room_agent.json_values import change_texts, to_shown
from clean_room_agent.redaction import SECRET_NAME, Redactor, secret_values
from clean_room_agent.report.trace import read_trace
from clean_room_agent.version import VERSION
from clean_room_agent.workspace import KEY_BYTES, Workspace, private_folder

SHOWN_VARIABLES = (
    *("OLLAMA_HOST", "PYTEST_ADDOPTS", "NODE_OPTIONS", "PYTHONPATH", "VIRTUAL_ENV", "CI", "LANG", "LC_ALL"),
    *("TERM", "SHELL", "TMPDIR", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"),
)
"""The only variables whose values are included."""
SHOWN_TEXTS = frozenset(
    {
        *("command", "status", "program_version", "timestamp", "completed_at", "began_at", "ended_at"),
        *("mode", "execute_model", "stages", "pass_type", "outcome", "kind", "code", "rule", "action"),
        *("call_type", "stage_name", "stage", "tag", "role", "provider", "finish", "reading"),
        *("base_commit", "snapshot_commit"),
    }
)
"""The fields of a run whose texts are included: chosen by the program, times, and names of models."""
HIDDEN = "[hidden: its name says that it is secret]"
LOG_NAME = re.compile(r"cra-bug-\w{1,16}\.log", re.ASCII)
MAX_TRACEBACKS = 3
MAX_TRACEBACK_BYTES = 200_000
NO_TEXTS = """\
Not in it: your files, and any text of the run: the task,
prompts, answers, diffs, errors, the output of tests.
"""
SENT = "Nothing was sent. Read it before you give it to anyone."


def cleaner(redactor: Redactor, workspace: Workspace | None) -> Callable[[str], str]:
    """A function that removes secrets, and the paths of home and repository, from a text."""
    places = {str(Path.home()): "~", str(Path.home().resolve()): "~"}
    if workspace is not None:
        places |= {str(workspace.repo): "<repository>", str(workspace.repo.resolve()): "<repository>"}
        places[str(workspace.worktrees(wiring.cache_folder()))] = "<worktrees>"  # named after the repository
    longest_first = sorted((place for place in places if len(place) > 1), key=len, reverse=True)

    def clean(text: str) -> str:
        text = redactor.redact(text)
        for place in longest_first:
            text = text.replace(place, places[place])
        return text

    return clean


def without_named(key: str, value: Any) -> Any:
    """The value of `key` without the values of keys with secret names, at any depth."""
    if isinstance(value, dict):
        return {name: without_named(str(name), inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [without_named(key, inner) for inner in value]
    secret = isinstance(value, str) and value and SECRET_NAME.search(key) and not key.endswith("_env")
    return HIDDEN if secret else value


def _program_facts() -> dict[str, Any]:
    needed = {
        re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in metadata.requires("clean-room-agent") or ()
    }
    installed = {entry.name: entry.version for entry in metadata.distributions() if entry.name in needed}
    return {
        "cra": VERSION,
        "python": sys.version,
        "packages": dict(sorted(installed.items())),
        "platform": platform.platform(),
        "sandbox": sandbox_line("bwrap").text,
        "variables": {name: os.environ[name] for name in SHOWN_VARIABLES if name in os.environ},
    }


def _configuration(workspace: Workspace) -> Any:
    try:
        return {
            row.key: {
                "value": without_named(
                    row.key.rpartition(".")[2], to_jsonable_python(row.value, fallback=str)
                ),
                "source": row.source,
            }
            for row in list_values(workspace)
        }
    except ConfigError as error:
        return {"error": error.message}


def _newest_tracebacks() -> Iterator[tuple[str, str]]:
    """(name, places) of the newest tracebacks that `cra` stored for this user in the temporary folder."""
    folder = Path(tempfile.gettempdir())
    found = []
    for path in filter(lambda path: LOG_NAME.fullmatch(path.name), folder.glob("cra-bug-*.log")):
        with contextlib.suppress(OSError):
            about = path.lstat()
            if stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid():
                found.append((about.st_mtime, path.name))
    for _, name in sorted(found, reverse=True)[:MAX_TRACEBACKS]:
        with contextlib.suppress(OSError):
            data = safe_open.read_bytes(folder, name, max_bytes=MAX_TRACEBACK_BYTES)
            yield name, places_in(data.decode("utf-8", "replace"))


def _of_run(workspace: Workspace, run: str) -> dict[str, Any] | None:
    """What is told of the run; None if none was asked for and there is none."""
    with read_record(workspace.repo) as conn:
        try:
            task_id = find_task(conn, run)
        except UsageError:
            if run == NEWEST_RUN:
                return None
            raise
        return {"id": task_id, **without_texts("", to_shown(read_trace(conn, task_id)))}


def without_texts(key: str, value: Any) -> Any:
    """The value of `key` with the length of each text in place of it, but for `SHOWN_TEXTS`: other texts are words of the user,
    of a model, a test or a server, or names of files, parts and steps.
    """
    if isinstance(value, dict):
        return {name: without_texts(name, inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [without_texts(key, inner) for inner in value]
    return f"({len(value)} characters)" if isinstance(value, str) and key not in SHOWN_TEXTS else value


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
@options.json_option
def command(run: str, repo: Path, place: Path | None, as_json: bool) -> int:
    """Collect what a maintainer needs in one JSON file, and list what is in it. Nothing is sent.

    Versions, platform, sandbox, configuration with the source of each value, places of saved tracebacks; and of RUN (the newest
    by default, if there is one) its events, outcomes and calls without their texts. What looks like a secret, and what has a
    secret's name, are replaced; your home directory is written as ~.

    Exit codes: 0 written, 2 there is no such run, or the file cannot be written.
    """
    if place is not None and place.exists():
        raise UsageError(f"{place} already exists", hint="name another file: -o FILE")
    found: dict[str, Any] = {
        "program": _program_facts(),
        "check": [as_object(line) for line in local_checks(repo)],
    }
    found["tracebacks"] = dict(_newest_tracebacks())
    workspace = None
    try:
        workspace = wiring.workspace_of(repo)
    except CraError as error:  # a bug can occur without a repository, too
        found["repository"] = error.message
    if workspace is not None:
        found["configuration"] = _configuration(workspace)
        try:
            told_of_run = _of_run(workspace, run) if workspace.raw.exists() else None
            found |= {"run": told_of_run} if told_of_run else {}
        except (RecordError, SchemaError) as error:
            found["record"] = error.message
    task_id = found["run"]["id"] if "run" in found else None
    kept = workspace if workspace is not None and workspace.folder.is_dir() else None
    key = kept.secret_key if kept else lambda: os.urandom(KEY_BYTES)
    redactor = Redactor(key, secret_values(dict(os.environ)))
    parts: dict[str, Any] = change_texts(found, cleaner(redactor, workspace))
    if place is None:
        name = f"cra-bug-report-{short_id(task_id)}.json" if task_id else "cra-bug-report.json"
        # No snapshot of the working tree includes the first.
        place = (private_folder(kept.folder / "reports") if kept else Path.cwd()) / name
    atomic_write(place, json.dumps(parts, indent=1) + "\n", private=True)
    if as_json:
        told = {"path": str(place), "task_id": task_id, "parts": list(parts)}
        output.answer_json({**told, "secrets_replaced": redactor.count})
        return 0
    sizes = "\n".join(f"  {name} ({len(json.dumps(part)) / 1000:,.1f} kB)" for name, part in parts.items())
    replaced = (
        f"{counted(redactor.count, 'secret was', 'secrets were')} replaced.\n" if redactor.count else ""
    )
    output.answer(f"{place}\n\n{sizes}\n\n{NO_TEXTS}\n{replaced}{SENT}")
    return 0
