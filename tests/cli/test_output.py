"""What terminals and programs get to read, whatever stands in a name."""

import io
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from clean_room_agent.cli import output
from clean_room_agent.cli.output import fitted, folded, visible, visible_json

LATIN = os.fsdecode(b"caf\xe9.py")
NO_LOOKS = "\xad\u034f\u061c\u115f\u1160\u180e\u200b\u200c\u200d\u2028\u2060\u2800\u3164\ufe0f\uffa0\U000e0041\U000e0100"


def test_names_that_are_not_utf8_survive_json(capsys: pytest.CaptureFixture[str]) -> None:
    output.answer_json({"path": LATIN, "other": "größe"})
    said = capsys.readouterr().out
    assert said.isascii() is False
    said.encode("utf-8")
    assert json.loads(said) == {"path": LATIN, "other": "größe"}


@pytest.mark.parametrize(
    ("line", "width", "rows"),
    [
        ("short", 60, ["short"]),
        (
            "  cost    16 calls, 14,488 tokens, 58 s",
            30,
            ["  cost    16 calls, 14,488", "          tokens, 58 s"],
        ),
        ("ok   git: a note that is too long for it", 24, ["ok   git: a note that is", "  too long for it"]),
        (
            "  cra show 1 --why PATH[:LINE]    why a file was shown",
            48,
            ["  cra show 1 --why PATH[:LINE]    why a file was", "    shown"],
        ),
        (
            "  ✓ step 1/2: 7 pass, 1 still red  [1 call, 0.2 s]",
            40,
            ["  ✓ step 1/2: 7 pass, 1 still red  [1", "    call, 0.2 s]"],
        ),
        (
            "  in  scope  a/long/path.py :: name  tier 2, score 0.95",
            42,
            ["  in  scope  a/long/path.py :: name  tier", "      2, score 0.95"],
        ),
        ("a/path/that/has/no/space/in/it and more", 12, ["a/path/that/has/no/space/in/it", "  and more"]),
        ("error: 日本語日本語 日本語日本語", 22, ["error: 日本語日本語", "  日本語日本語"]),
        ("", 10, [""]),
    ],
)
def test_a_line_goes_on_below_its_text(line: str, width: int, rows: list[str]) -> None:
    assert folded(line, width).split("\n") == rows


@given(st.text("ab日 \n", max_size=120), st.integers(1, 60))
def test_no_word_is_broken_lost_or_moved(text: str, width: int) -> None:
    got = folded(text, width)
    assert got.split() == text.split()
    for row in got.split("\n"):
        assert cell_len(row) <= width or len(row.split()) <= 1


def test_colours_take_no_room() -> None:
    assert folded("\x1b[31merror\x1b[0m: ten more", 15) == "\x1b[31merror\x1b[0m: ten more"


def test_a_file_gets_lines_as_they_are() -> None:
    assert fitted("word " * 100, io.StringIO()) == "word " * 100


def test_what_steers_a_terminal_or_no_encoding_takes_is_shown_as_an_escape() -> None:
    assert visible("a\tb\nc\x1b[2J\u202e") == "a\tb\nc\\x1b[2J\\u202e"
    assert visible(LATIN) == "caf\\xe9.py"
    assert visible("\ud83d") == "\\ud83d"


@pytest.mark.parametrize("character", [*NO_LOOKS, "\x9b", "\x85", "\u202e", "\u2066"])
def test_what_has_no_looks_is_shown_as_an_escape(character: str) -> None:
    number = ord(character)
    escape = (
        f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}" if number < 65536 else f"\\U{number:08x}"
    )
    assert visible(f"a{character}b") == f"a{escape}b"
    assert character not in visible_json(json.dumps(f"a{character}b", ensure_ascii=False))
