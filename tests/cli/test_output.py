"""What terminals and programs get to read, whatever stands in a name."""

import json
import os

import pytest

from clean_room_agent.cli import output
from clean_room_agent.cli.display import visible

LATIN = os.fsdecode(b"caf\xe9.py")


def test_what_steers_a_terminal_or_no_encoding_takes_is_shown_as_an_escape() -> None:
    assert visible("a\tb\nc\x1b[2J\u202e") == "a\tb\nc\\x1b[2J\\u202e"
    assert visible(LATIN) == "caf\\xe9.py"
    assert visible("\ud83d") == "\\ud83d"


def test_names_that_are_not_utf8_survive_json(capsys: pytest.CaptureFixture[str]) -> None:
    output.answer_json({"path": LATIN, "other": "größe"})
    said = capsys.readouterr().out
    assert said.isascii() is False
    said.encode("utf-8")
    assert json.loads(said) == {"path": LATIN, "other": "größe"}
