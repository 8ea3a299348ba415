"""Shell completion at TAB: click's own, with the runs of the record. It runs no program, and changes nothing.

The scripts in `completion_scripts/` send the words of the line, the one under the cursor last (bash: the line as it
stands, and the characters at which bash begins a new word). The answer's first line says how to go on:

    words   a line for each: the whole word, a tab, what it means (bash: what it inserts)
    files   names of files; `folders`: of folders alone
"""

import contextlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import ShellComplete, split_arg_string

from clean_room_agent.artifacts.names import NEWEST_RUN, SHORT_LENGTH, short_id
from clean_room_agent.cli.main import cra
from clean_room_agent.cli.output import Display
from clean_room_agent.errors import CraError, UsageError

MAX_RUNS = 30
"""Runs that are offered before an id is typed."""
SHOWN = 72
"""Characters of a description."""
PLAIN = re.compile(r"[A-Za-z0-9_@%+:,./=~-]*")
"""Words that mean themselves wherever they stand: in any quote, and without one. Only these are offered."""
KINDS = {"file": "files", "dir": "folders"}


def answer_shell(shell: str, words: Sequence[str]) -> None:
    """Print the completions for the shell; nothing for an unknown shell, or for bash without its two words."""
    if shell == "bash" and len(words) == 2:
        line, breaks = words
        words = split_arg_string(line)[1:] + ([""] if line[-1:].isspace() else [])
        how, offered = find_completions(words)
        kept = _kept_by_bash(line, words[-1] if words else "", breaks)
        shown = [] if kept is None else [word.removeprefix(kept) for word, _ in offered]
    elif shell in {"zsh", "fish"}:
        how, offered = find_completions(words)
        shown = [f"{word}\t{told}".rstrip() for word, told in offered]
    else:
        return
    sys.stdout.write("\n".join([how, *shown]) + "\n")


def find_completions(words: Sequence[str]) -> tuple[str, list[tuple[str, str]]]:
    """How the last of `words`, which follow the program's name, is completed: with what the shell knows itself, or with
    these words, each with what it means.
    """
    *before, word = words or [""]
    flag = word[: word.find("=") + 1] if word.startswith("-") else ""
    try:
        items = ShellComplete(cra, {"obj": Display(os.environ)}, "cra", "").get_completions([*before], word)
    except (click.ClickException, CraError, OSError):  # no such command; no record of the user's
        items = []
    how = next((KINDS[item.type] for item in items if item.type in KINDS), "words")
    names = [(f"{flag}{item.value}", _short(item.help or "")) for item in items if item.type not in KINDS]
    return how, [(name, told) for name, told in names if PLAIN.fullmatch(name)]


def _kept_by_bash(line: str, word: str, breaks: str) -> str | None:
    """What bash keeps of the word under the cursor, and an answer goes on from: all up to the last break, or up to a quote that
    it begins with; None where another quote leaves that unclear.
    """
    typed = re.split(r"\s", line)[-1]
    if typed != word:
        return "" if typed[1:] == word and typed[0] in "'\"" else None
    last = max((word.rfind(sign) for sign in breaks), default=-1)
    return word[: last + 1].removesuffix("@")  # `@` begins a word, and belongs to it


def name_runs(context: click.Context, word: str) -> Iterator[tuple[str, str]]:
    """The runs whose name begins with `word`, the newest first, by age if that begins with `@`; each with its task.

    Raises:
        CraError: there is no record that is known to be the user's, or it is of another version.
    """
    from clean_room_agent.db.raw.completion_names import find_runs

    with _open_record(context.params.get("repo") or Path.cwd()) as (conn, safe):
        by_age = find_runs(conn, "", limit=MAX_RUNS, replays=False)
        found = find_runs(conn, word, limit=MAX_RUNS)
    if not word or word.startswith(NEWEST_RUN):
        for number, (_, told) in enumerate(by_age if word else by_age[:1]):
            yield (f"{NEWEST_RUN}~{number}" if number else NEWEST_RUN), safe(told)
    for task_id, told in found:
        yield (task_id if len(word) > SHORT_LENGTH else short_id(task_id)), safe(told)


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


def _short(told: str) -> str:
    """The first line of a description."""
    line = " ".join(told.split("\n", 1)[0].split())
    return line if len(line) <= SHOWN else line[: SHOWN - 1] + "…"
