import base64
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.llm.token_estimator import (
    _PIECE,
    FRAMING_TOKENS,
    LEAST_CALLS,
    TokenEstimator,
    count_pieces,
    estimate,
    factor_of_calls,
    least_tokens,
    piece_tokens,
)


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


QWEN = {
    "=": 17, "-": 16, "#": 16, "/": 16, ".": 17, "_": 17, "+": 32, "~": 32, ";": 63, "!": 125, ",": 125, "<": 125,
    "?": 250, "(": 250, "^": 250, "|": 250, '"': 500, "[": 500, "{": 500, "`": 500, "(){}": 2000, "\\/": 500,
    " ": 9, "\t": 63, "\n": 32, "\r": 1000, "\r\n": 250, " \n": 500, " \t": 999, "\f": 1000, "\0": 1000, "\x1b": 1000,
    "\u00a0": 125, "\u2003": 2000, "\u200b": 500, "\ufeff": 1000, "\u2500": 125, "\u2550": 500, "\u2588": 250, "\u2026": 125,
    "\u2022": 1000, "\u00a7": 1000, "\u0301": 1000, "e\u0301\u0302\u0316": 6000, "\U0001f600": 1000,
    "\U0001f468\u200d\U0001f469": 4000, "\U0001f1e9\U0001f1ea": 2000, "\ue000": 3000, "\U00010330": 1000, "\U0001d49c": 1000,
    "\u8bed": 1000, "\u9f98": 2000, "\uac00": 1000, "\u044f": 1000, "\u0e01": 500, "\u12a0": 1000, "\u00bd": 1000,
    "\u0663": 2000, "\u2167": 2000, "a": 125, "ab": 500,
}  # fmt: skip
"""Tokens of a thousand of each, counted with the vocabulary of Qwen 2.5."""


@pytest.mark.parametrize(("unit", "tokens"), QWEN.items())
def test_a_long_run_is_about_as_many_tokens_as_a_real_vocabulary_makes_of_it(unit: str, tokens: int) -> None:
    assert estimate(unit * 1000) >= 0.64 * tokens


@given(st.text(st.sampled_from("=-#.*/_ "), min_size=200))
def test_no_token_holds_more_than_sixteen_marks_or_blanks(text: str) -> None:
    assert estimate(text, 1.0) >= len(text) / 17 - 1


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_a_character_is_never_more_than_the_tokens_of_its_bytes(text: str) -> None:
    assert estimate(text, 1.0) <= len(text.encode()) + 1


def test_a_line_of_marks_is_not_one_token() -> None:
    for mark in "=\u2500.\U0001f600\u8a9e\0":
        assert estimate(mark * 200_000) > 200_000 / 16


@pytest.mark.parametrize(
    ("piece", "tokens"),
    [
        ("international", 2.25), (" getElementById", 4.0), ('"])', 1.0), ("\n\n\n", 1.0), (" " * 24, 1.0),
        ("-" * 76 + "\n", 4.25), ("\u0444\u0430\u0439\u043b", 5 / 3),
    ],
)  # fmt: skip
def test_what_is_ordinary_costs_little(piece: str, tokens: float) -> None:
    assert piece_tokens(piece) == pytest.approx(tokens)


def test_what_no_vocabulary_merges_is_counted_by_its_letters() -> None:
    secret = base64.b64encode(random.Random(2).randbytes(3000)).decode()
    assert estimate(secret) >= 0.9 * 2979


def test_a_factor_is_enough_for_nearly_all_known_calls_and_never_below_the_worst_case() -> None:
    needed = [0.9 + place / 1000 for place in range(100)] + [1.05] * 100
    assert factor_of_calls(needed[: LEAST_CALLS - 1]) is None
    assert factor_of_calls(needed) == 1.09
    assert factor_of_calls([0.7] * LEAST_CALLS) == 1.0


def test_a_request_is_its_pieces_times_a_factor() -> None:
    assert TokenEstimator(factor=1.3).request("a", "b c") == estimate("a") + estimate("b c") + FRAMING_TOKENS


@given(st.text())
def test_the_least_count_is_never_above_the_pieces(text: str) -> None:
    assert 0 <= least_tokens(text) <= count_pieces(text)
