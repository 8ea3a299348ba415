"""Writes results to standard output and progress to standard error, redacted and safe for a terminal."""

import json
import sys
from typing import TYPE_CHECKING

import click

from clean_room_agent.cli.display import current_display, fitted, visible_json
from clean_room_agent.json_values import to_shown

if TYPE_CHECKING:
    from rich.console import Console


def console() -> "Console":
    """The console for answers to a person."""
    from clean_room_agent.cli.safe_console import safe_console

    return safe_console(sys.stdout)


def progress_console() -> "Console":
    """The console for progress, on standard error."""
    from clean_room_agent.cli.safe_console import safe_console

    return safe_console(sys.stderr)


def answer(text: str) -> None:
    """Write `text` to standard output, made safe."""
    click.echo(fitted(safe(text), sys.stdout))


def aside(text: str) -> None:
    """Write `text` to standard error, made safe."""
    click.echo(fitted(safe(text), sys.stderr), err=True)


def ring(what: str) -> None:
    """Ring the terminal's bell and send a desktop notification (OSC 9) that `what` has ended; never to a file."""
    if sys.stderr.isatty():
        click.echo(f"\a\x1b]9;{safe(what)} has ended\a", err=True, nl=False)


def hand_on(text: str) -> None:
    """Write `text` for another program, without its secrets; unchanged, except for what a terminal must not see."""
    display = current_display()
    click.echo(display.safe(text) if sys.stdout.isatty() else display.redact(text), nl=False)


def answer_json(value: object) -> None:
    """Write `value` as one JSON document without its secrets; structs become objects."""
    display = current_display()
    display.answered = True
    shown = display.redacted(to_shown(value))
    document = json.dumps(shown, indent=2 if sys.stdout.isatty() else None, ensure_ascii=False)
    click.echo(visible_json(document))


def answer_json_line(value: object) -> None:
    """Write `value` as one line of JSON without its secrets, at once: one of several answers."""
    display = current_display()
    display.answered = True
    line = json.dumps(display.redacted(to_shown(value)), ensure_ascii=False)
    click.echo(visible_json(line))
    sys.stdout.flush()


def safe(text: str) -> str:
    """`text` without its secrets, and with nothing that could control a terminal."""
    return current_display().safe(text)


def one_line(text: str) -> str:
    """Like `safe`, with line feeds escaped, too, since a file's name may contain them."""
    return safe(text).replace("\n", "\\x0a")


class ProgressBar:
    """A line on a terminal with the progress of long work; nothing elsewhere."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._shown = ""

    def show(self, done: int, total: int, note: str = "") -> None:
        """Show that `done` of `total` is done, followed by `note`."""
        if not sys.stderr.isatty() or not total:
            return
        text = f"{self._what} {done * 100 // total:3d} % ({done}/{total}){note}"
        if text != self._shown:
            sys.stderr.write("\r\033[2K" + text)
            sys.stderr.flush()
            self._shown = text

    def close(self) -> None:
        """Remove the line."""
        if self._shown:
            sys.stderr.write("\r\033[2K")
            sys.stderr.flush()
            self._shown = ""
