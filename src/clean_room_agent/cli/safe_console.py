"""The rich console of every view, which escapes control characters and folds long lines; and redaction of whole views
and events, so that no renderer has to do it.
"""

import contextlib
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TextIO, TypeVar

from rich.console import Console, ConsoleOptions, ConsoleRenderable, Group, RenderHook
from rich.segment import Segment
from rich.text import Text

from clean_room_agent import proc
from clean_room_agent.cli.output import current_display, rows_of, visible
from clean_room_agent.json_values import change_texts
from clean_room_agent.proc import absolute_program

if TYPE_CHECKING:
    from clean_room_agent.orchestrator.events import Event, Observer

ValueT = TypeVar("ValueT")


class ChangedView:
    """An `Observer` that passes each event on after `change`, which takes out of its texts what must not be shown."""

    def __init__(self, view: "Observer", change: "Callable[[Event], Event]") -> None:
        self._view = view
        self._change = change

    def notice(self, event: "Event") -> None:
        """Hand `event` on."""
        self._view.notice(self._change(event))


def sanitized(value: ValueT) -> ValueT:
    """`value` without secrets, and with the control characters of every text in it written as escapes."""
    return change_texts(value, current_display().safe)  # type: ignore[no-any-return]


class SafeText:
    """A view with the control characters of its texts as escapes; its own styles and cursor movements stay."""

    def __init__(self, view: ConsoleRenderable) -> None:
        self._view = view

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self._view, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


class _MakeSafe(RenderHook):
    def __init__(self, width: Callable[[], int]) -> None:
        """`width`: columns of the terminal; 0 if there is none."""
        self._width = width

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        width = self._width()
        return [SafeText(_fold_lines(view, width) if width else view) for view in renderables]


def answers_console() -> Console:
    """The console for answers to a person."""
    return safe_console(sys.stdout)


def progress_console() -> Console:
    """The console for progress, on standard error."""
    return safe_console(sys.stderr)


def safe_console(file: TextIO) -> Console:
    """A console that writes to `file`; what is printed on it is safe for a terminal.

    At a terminal, lines of text are folded between words, but for those of a `Text` with `no_wrap`: they are shown as they
    are, whatever the width.
    """
    console = Console(file=file, soft_wrap=True)
    console.push_render_hook(_MakeSafe(lambda: console.width if file.isatty() else 0))
    return console


def _fold_lines(view: ConsoleRenderable, width: int) -> ConsoleRenderable:
    if isinstance(view, Group):
        return Group(
            *(
                _fold_lines(part, width) if isinstance(part, Text | Group) else part
                for part in view.renderables
            )
        )
    if not isinstance(view, Text) or view.no_wrap:
        return view
    rows = []
    for line in view.split("\n", allow_blank=True):
        rows += [Text(" " * indent) + line[start:end] for indent, start, end in rows_of(line.plain, width)]
    return Text("\n", end=view.end).join(rows)


USUAL = "less"
LESS = "FRX"
"""As in git: output of one screen needs no key, colours stay, and the text stays on the screen."""


@contextlib.contextmanager
def paged() -> Iterator[Console]:
    """The console for answers; at a terminal, what is longer than the screen is shown in the user's pager."""
    console = answers_console()
    if not (sys.stdout.isatty() and sys.stdin.isatty()):
        yield console
        return
    with console.capture() as captured:
        yield console
    show_text(captured.get())


def show_text(text: str) -> None:
    """Write `text`, which is safe to be shown, to the terminal."""
    if text.count("\n") < shutil.get_terminal_size().lines or not _show_in_pager(text):
        sys.stdout.write(text)
        sys.stdout.flush()


def _show_in_pager(text: str) -> bool:
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
