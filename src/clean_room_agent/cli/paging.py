"""Shows long output through the user's pager, if there is a terminal."""

import contextlib
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from clean_room_agent import proc
from clean_room_agent.proc import absolute_program

if TYPE_CHECKING:
    from rich.console import Console

USUAL = "less"
LESS = "FRX"
"""As in git: output of one screen needs no key, colours stay, and the text stays on the screen."""


@contextlib.contextmanager
def paged() -> Iterator["Console"]:
    """The console for answers; at a terminal, the output is shown at the end, in the user's pager if it is longer than
    the screen.
    """
    from clean_room_agent.cli.safe_console import answers_console  # rich is slow to load

    console = answers_console()
    if not (sys.stdout.isatty() and sys.stdin.isatty()):
        yield console
        return
    with console.capture() as captured:
        yield console
    show_text(captured.get())


def show_text(text: str) -> None:
    """Write `text`, which is safe to be shown, to the terminal."""
    if text.count("\n") < shutil.get_terminal_size().lines or not _page(text):
        sys.stdout.write(text)
        sys.stdout.flush()


def _page(text: str) -> bool:
    """Show it with $PAGER, or else less; returns whether that worked. "cat" or "" in $PAGER means no pager."""
    words = shlex.split(os.environ.get("PAGER", USUAL))
    if not words or words == ["cat"]:
        return False
    program = absolute_program(words[0], os.environ)
    if "/" not in program:
        return False
    try:
        proc.show_at_terminal((program, *words[1:]), text.encode(), {"LESS": LESS, **os.environ})
    except OSError:
        return False
    return True
