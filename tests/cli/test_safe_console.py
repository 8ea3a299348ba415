"""Views without secrets and control characters."""

import io
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text
from testing.patience import PATIENCE
from testing.shells import read_terminal

from clean_room_agent.cli.output import Display, visible
from clean_room_agent.cli.safe_console import (
    ChangedView,
    answers_console,
    progress_console,
    safe_console,
    sanitized,
)
from clean_room_agent.json_values import change_texts
from clean_room_agent.orchestrator.events import Event, PassProgress

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


class Seen:
    """Keeps the events that it is shown."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def notice(self, event: Event) -> None:
        self.events.append(event)


def test_an_event_for_a_terminal_has_neither_secrets_nor_control_characters() -> None:
    seen = Seen()
    ChangedView(seen, lambda event: change_texts(event, Display({}).safe)).notice(
        PassProgress(doing=f"\x1b[2J {TOKEN}")
    )
    (event,) = seen.events
    assert isinstance(event, PassProgress)
    assert event.doing.startswith("\\x1b[2J [secret:")
    assert TOKEN not in event.doing


def test_an_event_for_a_program_keeps_its_characters() -> None:
    seen = Seen()
    ChangedView(seen, Display({}).redacted).notice(PassProgress(doing=f"\x1b[2J {TOKEN}"))
    (event,) = seen.events
    assert isinstance(event, PassProgress)
    assert event.doing.startswith("\x1b[2J [secret:")


def test_texts_are_made_safe_at_any_depth() -> None:
    assert sanitized((("a\x07b",), {"k": ["\x9b"]})) == (("a\\x07b",), {"k": ["\\x9b"]})


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_view_is_folded_at_a_terminal_but_not_what_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    file = Terminal()
    exact = "def long_function(argument, another):"
    safe_console(file).print(
        Group(Text("  cost  16 calls and more", style="bold"), Text(exact, no_wrap=True)), soft_wrap=True
    )
    plain = Text.from_ansi(file.getvalue()).plain
    assert plain.splitlines() == ["  cost  16 calls and", "    more", exact]


def test_a_view_in_a_file_keeps_its_lines() -> None:
    file = io.StringIO()
    safe_console(file).print(Text("word " * 60), soft_wrap=True)
    assert file.getvalue().count("\n") == 1


@pytest.mark.parametrize("open_console", [answers_console, progress_console])
def test_no_view_steers_the_terminal_whoever_forgot_to_make_it_safe(
    open_console: Callable[[], Console], capsys: pytest.CaptureFixture[str]
) -> None:
    table = Table("name")
    table.add_row("\x1b[2Ja\x9bb\u202ec")
    open_console().print(Group(Text("\x1b]0;evil\x07a.py", style="bold"), table), "plain \x1b[2J")
    shown = "".join(capsys.readouterr())
    assert {character for character in shown if visible(character) != character} == set()
    assert "\\x1b]0;evil" in shown
    assert "\\x1b[2Ja\\x9bb\\u202ec" in shown


ROWS = """
import fcntl, struct, sys, termios
from clean_room_agent.cli.safe_console import paged
fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
with paged() as console:
    for number in range(int(sys.argv[1])):
        console.print(f"row {number}", style="bold", highlight=False)
"""


def told(tmp_path: Path, rows: int, **environment: str) -> str:
    """What a terminal of 24 lines shows."""
    main, side = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", ROWS, str(rows)],
        cwd=tmp_path,
        env={**os.environ, "TERM": "xterm", **environment},
        stdin=side,
        stdout=side,
        stderr=side,
    )
    os.close(side)
    said = read_terminal(main)
    os.close(main)
    assert process.wait(PATIENCE) == 0, said
    return said


@pytest.fixture
def pager(tmp_path: Path) -> Path:
    program = tmp_path / "pager"
    program.write_text(f"#!/bin/sh\necho paged by {'$LESS'}\ncat\n")
    program.chmod(0o755)
    return program


def test_what_is_longer_than_the_screen_goes_through_the_pager(tmp_path: Path, pager: Path) -> None:
    said = told(tmp_path, 40, PAGER=str(pager))
    assert "paged by FRX" in said, said
    assert "\x1b[1mrow 39" in said


def test_what_fits_the_screen_does_not(tmp_path: Path, pager: Path) -> None:
    said = told(tmp_path, 20, PAGER=str(pager))
    assert "paged" not in said
    assert "row 19" in said


@pytest.mark.parametrize("command", ["", "cat", "/nowhere/pager", "no-such-pager"])
def test_without_a_pager_all_is_written(tmp_path: Path, command: str) -> None:
    assert "row 39" in told(tmp_path, 40, PAGER=command)


def test_a_pager_in_the_folder_itself_is_not_run(tmp_path: Path, pager: Path) -> None:
    pager.rename(tmp_path / "less")
    assert "paged" not in told(tmp_path, 40, PATH=":", PAGER="less")
