"""Views without secrets and control characters."""

import io
from collections.abc import Callable

import pytest
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

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
