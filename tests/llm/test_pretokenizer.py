import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.llm.pretokenizer import _PIECE, count_pieces, estimate


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", 0),
        ("hello world", 2),
        ("I'll go", 3),
        ("x1234", 5),
        ("snake_case", 2),
        ("a = b", 3),
        ("if (x):\n    return\n", 7),
        ("\n\n\n", 1),
        ("   y", 2),
    ],
)
def test_pieces_follow_the_pre_tokeniser(text: str, pieces: int) -> None:
    assert count_pieces(text) == pieces


@given(st.text())
def test_every_character_is_in_one_piece(text: str) -> None:
    assert "".join(_PIECE.findall(text)) == text


@given(st.text())
def test_the_estimate_is_never_below_the_pieces(text: str) -> None:
    assert estimate(text) >= count_pieces(text)


def test_a_long_run_of_letters_is_more_than_one_token() -> None:
    assert estimate("x" * 1200, 1.0) == 100
    assert estimate("\u8a9e" * 100, 1.0) == 25
