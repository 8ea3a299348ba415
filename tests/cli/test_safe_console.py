"""Views are folded and made safe by the console that prints them."""

import io

import pytest
from rich.console import Group
from rich.text import Text

from clean_room_agent.cli.safe_console import safe_console


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
