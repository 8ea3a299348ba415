"""None"""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from clean_room_agent.cli.folding import fitted, folded


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
            ["  cra show 1 --why PATH[:LINE]", "    why a file was shown"],
        ),
        (
            "  ✓ step 1/2: 7 pass, 1 still red  [1 call, 0.2 s]",
            40,
            ["  ✓ step 1/2: 7 pass, 1 still red", "    [1 call, 0.2 s]"],
        ),
        (
            "  in  scope  a/long/path.py :: name  tier 2, score 0.95",
            42,
            ["  in  scope  a/long/path.py :: name", "      tier 2, score 0.95"],
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
