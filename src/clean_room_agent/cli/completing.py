"""Shell completion at TAB: click's own, with the runs of the record. It runs no program, and changes nothing."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from click.shell_completion import ShellComplete, get_completion_class, shell_complete

from clean_room_agent.artifacts.names import NEWEST_RUN, SHORT_LENGTH, first_line, short_id
from clean_room_agent.cli.main import cra
from clean_room_agent.cli.output import Display
from clean_room_agent.errors import CraError, UsageError

COMPLETE = "_CRA_COMPLETE"
"""Set by the shell's completion script, to what it asks."""
MAX_RUNS = 30
"""Runs that are offered before an id is typed."""


def answer_shell(asked: str) -> None:
    """Print the completions as click's script for the shell reads them; nothing where there are none."""
    with contextlib.suppress(click.ClickException, CraError, OSError, KeyError, ValueError):
        shell_complete(cra, {"obj": Display(os.environ)}, "cra", COMPLETE, asked)


def script_of(shell: str) -> str:
    """Click's completion script for the shell."""
    kind = get_completion_class(shell)
    assert kind is not None
    return ShellComplete.source(kind(cra, {}, "cra", COMPLETE))  # without bash's own, which runs bash


def name_runs(context: click.Context, word: str) -> Iterator[tuple[str, str]]:
    """The runs whose name begins with `word`, the newest first, each with its task.

    Raises:
        CraError: there is no record that is known to be the user's, or it is of another version.
    """
    from clean_room_agent.db.raw.completion_names import find_runs

    with _open_record(context.params.get("repo") or Path.cwd()) as (conn, safe):
        found = find_runs(conn, word.removeprefix(NEWEST_RUN), limit=MAX_RUNS)
        for newest, (task_id, told) in enumerate(found):
            if newest == 0 and not word.removeprefix(NEWEST_RUN):
                yield NEWEST_RUN, safe(first_line(told))
            yield (task_id if len(word) > SHORT_LENGTH else short_id(task_id)), safe(first_line(told))


@contextlib.contextmanager
def _open_record(place: Path) -> Iterator[tuple[Any, Any]]:
    """A connection to the record of the repository around `place`, and a function that makes its texts safe to show."""
    from clean_room_agent.db.connection import connect_file
    from clean_room_agent.workspace import FOLDER, Workspace, is_ours

    above = place.expanduser().absolute()
    top = next((folder for folder in (above, *above.parents) if (folder / FOLDER).is_dir()), above)
    workspace = Workspace(repo=top)
    if not is_ours(workspace.folder):
        raise UsageError(f"{workspace.folder} is not known to be yours")
    display = Display(os.environ)
    display.repo = top
    with contextlib.closing(connect_file("raw", workspace.raw, read_only=True)) as conn:
        yield conn, display.safe
