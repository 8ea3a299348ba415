"""Bug reports: facts about the program, the configuration and a run, without secrets and names, as a ZIP file."""

import contextlib
import io
import json
import os
import pwd
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from clean_room_agent.app import bug_report_facts, wiring
from clean_room_agent.artifacts.names import NEWEST_RUN, short_id
from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.raw.runs import find_task
from clean_room_agent.db.rows import Connection
from clean_room_agent.errors import CraError, RecordError, SchemaError, UsageError
from clean_room_agent.json_values import change_texts, to_shown
from clean_room_agent.redaction import Redactor, secret_values
from clean_room_agent.workspace import KEY_BYTES, Workspace, private_folder

HEADING = "A bug report of cra"
NAME = "cra-bug-report"
MOMENT = (1980, 1, 1, 0, 0, 0)
"""The time stamp of every file in the archive, so that the same facts give the same bytes."""
SHORTEST_NAME = 3
"""Shorter user names are left in paths, since they are parts of too many other words."""


class Part(Struct, frozen=True, kw_only=True):
    """One file of the archive."""

    name: str
    holds: str
    """What is in it, for the person who decides whether to send it."""
    value: Any
    """Text as it is, anything else as JSON."""


Files = tuple[tuple[Part, str], ...]
"""The files of a report, each with its text as it goes into the archive."""


class BugReport(Struct, frozen=True, kw_only=True):
    """A report before it is written."""

    files: Files
    task_id: str | None
    """The run that it is about, if any."""
    secrets_replaced: int
    default_place: Path


def make_report(repo: Path, run: str, *, prompts: bool) -> BugReport:
    """The report on the program here and on `run`; with `prompts`, including the texts that models read and wrote.

    Raises:
        UsageError: there is no such run.
    """
    workspace, why_not = _workspace(repo)
    redactor = _redactor(workspace)
    parts = [*_parts(repo, workspace, why_not, prompts=prompts)]
    task_id = None
    try:
        with _record(workspace) as conn:
            task_id = None if conn is None else _task(conn, run)
            parts += _run_parts(conn, task_id, prompts=prompts)
    except (RecordError, SchemaError) as error:
        parts.append(
            Part(name="record.txt", holds="why the record cannot be read", value=f"{error.message}\n")
        )
    clean = cleaner(redactor, workspace)
    return BugReport(
        files=tuple((part, _text(change_texts(part.value, clean))) for part in parts),
        task_id=task_id,
        secrets_replaced=redactor.count,
        default_place=_default_place(workspace, task_id),
    )


def cleaner(redactor: Redactor, workspace: Workspace | None) -> Callable[[str], str]:
    """A function that removes secrets, the paths of home and repository, and the user's name in paths from a text."""
    places = {str(Path.home()): "~", str(Path.home().resolve()): "~"}
    user = ""
    with contextlib.suppress(KeyError):
        entry = pwd.getpwuid(os.getuid())
        user = entry.pw_name
        places.setdefault(entry.pw_dir, "~")
    if workspace is not None:
        places |= {str(workspace.repo): "<repository>", str(workspace.repo.resolve()): "<repository>"}
        places[str(workspace.worktrees(wiring.cache_folder()))] = "<worktrees>"  # named after the repository
    longest_first = sorted((place for place in places if len(place) > 1), key=len, reverse=True)
    known = re.compile("|".join(rf"{re.escape(place)}(?![\w-])" for place in longest_first) or r"(?!)")
    own = re.compile(
        rf"(?<=/){re.escape(user)}(?![\w-])" if len(user) >= SHORTEST_NAME and user != "root" else r"(?!)"
    )

    def clean(text: str) -> str:
        return own.sub("<user>", known.sub(lambda match: places[match[0]], redactor.redact(text)))

    return clean


def _readme(files: Files) -> str:
    return f"{HEADING}, made by `cra bug-report`, which sent it nowhere.\n\n{listing(files)}\n"


def listing(files: Files) -> str:
    """Two lines per file, for a narrow terminal: name and size, then what it contains."""
    return "\n".join(
        f"  {part.name} ({len(text.encode()) / 1000:,.1f} kB)\n      {part.holds}" for part, text in files
    )


def archive(files: Files) -> bytes:
    """A ZIP file of the files and a README; the same texts give the same bytes."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in (("README.txt", _readme(files)), *((part.name, text) for part, text in files)):
            entry = zipfile.ZipInfo(f"{NAME}/{name}", MOMENT)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o600 << 16
            packed.writestr(entry, text)
    return held.getvalue()


def _workspace(repo: Path) -> tuple[Workspace | None, str]:
    """The repository's workspace, or why there is none: a bug can occur without a repository, too."""
    try:
        return wiring.workspace_of(repo), ""
    except CraError as error:
        return None, error.message


def _redactor(workspace: Workspace | None) -> Redactor:
    environment = dict(os.environ)
    named = () if workspace is None else bug_report_facts.named_secrets(workspace, environment)
    kept = workspace is not None and workspace.folder.is_dir()
    key = workspace.secret_key if workspace is not None and kept else lambda: os.urandom(KEY_BYTES)
    return Redactor(key, (*named, *secret_values(environment)))


@contextlib.contextmanager
def _record(workspace: Workspace | None) -> Iterator[Connection | None]:
    """A connection to the record; None if there is no record."""
    if workspace is None or not workspace.raw.exists():
        yield None
        return
    with contextlib.closing(get_connection("raw", repo_path=workspace.repo, read_only=True)) as conn:
        yield conn


def _task(conn: Connection, run: str) -> str | None:
    """The run's full id; None if no run was asked for and there is none."""
    try:
        return find_task(conn, run)
    except UsageError:
        if run == NEWEST_RUN:
            return None
        raise


def _parts(repo: Path, workspace: Workspace | None, why_not: str, *, prompts: bool) -> Iterator[Part]:
    yield Part(
        name="program.json",
        holds="versions, platform, sandbox, chosen variables",
        value=bug_report_facts.program_facts(workspace),
    )
    yield Part(
        name="check.json",
        holds="`cra check`, without the model server",
        value=bug_report_facts.check_facts(repo),
    )
    if workspace is None:
        yield Part(
            name="repository.txt",
            holds="why the report says nothing about a repository",
            value=why_not + "\n",
        )
        return
    configuration = bug_report_facts.configuration_facts(workspace)
    yield Part(name="configuration.json", holds="every value, and where it comes from", value=configuration)
    yield Part(
        name="folder.json",
        holds="sizes in .clean_room; names that the program gave",
        value=bug_report_facts.folder_facts(workspace),
    )
    holds = "the traceback of a bug" if prompts else "the traceback of a bug, without messages"
    for name, text in bug_report_facts.tracebacks(messages=prompts):
        yield Part(name=f"tracebacks/{name}", holds=holds, value=text)


def _run_parts(conn: Connection | None, task_id: str | None, *, prompts: bool) -> Iterator[Part]:
    if conn is None or task_id is None:
        return
    from clean_room_agent.report.run_facts import call_facts, event_facts, run_facts, run_texts
    from clean_room_agent.report.trace import read_trace

    trace = read_trace(conn, task_id)
    yield Part(
        name="run.json",
        holds="outcome, passes, attempts, test runs in numbers",
        value=run_facts(trace),
    )
    yield Part(name="events.json", holds="what happened, and when", value=event_facts(trace))
    yield Part(
        name="calls.json", holds="each call: model, tokens, time, how it was read", value=call_facts(trace)
    )
    if not prompts:
        return
    from clean_room_agent.report.call_texts import attempt_diffs, call_texts, texts_object

    texts = texts_object(call_texts(conn, trace))
    diffs = to_shown(attempt_diffs(trace, accepted_only=False))
    tests = [{"kind": row.kind, "of": row.task_id, "output": row.test_output} for row in trace.tests]
    task = "" if trace.run is None else trace.run.task_description
    yield Part(name="task.txt", holds="YOUR WORDS: the task", value=task + "\n")
    yield Part(
        name="texts.json",
        holds="YOUR WORDS AND NAMES: reasons, events, errors",
        value=to_shown(run_texts(trace)),
    )
    yield Part(name="prompts.json", holds="YOUR CODE: what models read and answered", value=texts)
    yield Part(name="diffs.json", holds="YOUR CODE: what each attempt changed", value=diffs)
    yield Part(name="tests.json", holds="what your tests printed", value=tests)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def _default_place(workspace: Workspace | None, task_id: str | None) -> Path:
    """The default path: in `.clean_room`, where no snapshot of the working tree includes it; else in the current
    folder.
    """
    name = f"{NAME}-{short_id(task_id)}.zip" if task_id else f"{NAME}.zip"
    if workspace is None or not workspace.folder.is_dir():
        return Path.cwd() / name
    return private_folder(workspace.folder / "reports") / name
