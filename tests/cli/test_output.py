"""What terminals and programs get to read, whatever stands in a name."""

import json
import os
from collections.abc import Callable

import pytest
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from clean_room_agent.cli import output
from clean_room_agent.cli.display import visible

LATIN = os.fsdecode(b"caf\xe9.py")


def test_names_that_are_not_utf8_survive_json(capsys: pytest.CaptureFixture[str]) -> None:
    output.answer_json({"path": LATIN, "other": "größe"})
    said = capsys.readouterr().out
    assert said.isascii() is False
    said.encode("utf-8")
    assert json.loads(said) == {"path": LATIN, "other": "größe"}


@pytest.mark.parametrize("open_console", [output.console, output.progress_console])
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
