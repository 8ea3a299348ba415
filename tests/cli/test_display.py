"""Text made safe for a terminal."""

import json
import os

import pytest

from clean_room_agent.cli.display import visible, visible_json

LATIN = os.fsdecode(b"caf\xe9.py")


def test_what_steers_a_terminal_or_no_encoding_takes_is_shown_as_an_escape() -> None:
    assert visible("a\tb\nc\x1b[2J\u202e") == "a\tb\nc\\x1b[2J\\u202e"
    assert visible(LATIN) == "caf\\xe9.py"
    assert visible("\ud83d") == "\\ud83d"


NO_LOOKS = "\xad\u034f\u061c\u115f\u1160\u180e\u200b\u200c\u200d\u2028\u2060\u2800\u3164\ufe0f\uffa0\U000e0041\U000e0100"


@pytest.mark.parametrize("character", [*NO_LOOKS, "\x9b", "\x85", "\u202e", "\u2066"])
def test_what_has_no_looks_is_shown_as_an_escape(character: str) -> None:
    number = ord(character)
    escape = (
        f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}" if number < 65536 else f"\\U{number:08x}"
    )
    assert visible(f"a{character}b") == f"a{escape}b"
    assert character not in visible_json(json.dumps(f"a{character}b", ensure_ascii=False))
