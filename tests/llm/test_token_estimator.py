import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.llm.token_estimator import (
    _PIECE,
    FRAMING_TOKENS,
    KINDS,
    FittedEstimator,
    InitialEstimator,
    count_pieces,
    estimate,
    features,
    kinds_of,
    least_tokens,
    word_of,
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


def test_a_long_run_of_letters_is_more_than_one_token() -> None:
    assert estimate("x" * 1200, 1.0) == 100
    assert estimate("\u8a9e" * 100, 1.0) == 25


def fitted(
    *, margin: float = 1.0, words: tuple[tuple[str, float], ...] = (), **weights: float
) -> FittedEstimator:
    return FittedEstimator(
        weights=tuple(weights.get(kind, 0.0) for kind in KINDS), words=words, margin=margin, pairs=200
    )


@pytest.mark.parametrize(
    ("piece", "kinds"),
    [
        ("the", {"bare": 1.0}),
        (" the", {"spaced": 1.0}),
        ("_the", {"marked": 1.0}),
        (" getElement", {"spaced": 1.0, "hump": 1.0, "letter_5": 3.0}),
        ("international", {"bare": 1.0, "letter_5": 3.0, "letter_8": 3.0, "letter_11": 3.0}),
        ("HTTPServer", {"bare": 1.0, "hump": 1.0, "letter_5": 2.0}),
        ("7", {"digit": 1.0}),
        (" ==", {"mark": 1.0}),
        ("=====\n", {"mark": 1.0, "mark_3": 3.0}),
        ("\n\n", {"line": 1.0}),
        ("  ", {"blank": 1.0}),
        ("        ", {"blank": 1.0, "blank_5": 1.0}),
        ("\u8a9e\u8a9e", {"bare": 1.0, "foreign": 2.0}),
    ],
)
def test_a_piece_counts_as_its_kinds(piece: str, kinds: dict[str, float]) -> None:
    assert {KINDS[number]: amount for number, amount in kinds_of(piece)} == kinds


def test_only_words_of_some_length_may_cost_extra() -> None:
    assert [word_of(piece) for piece in (" sympy", "/sympy", "the", "  ", "=====")] == [
        "sympy",
        "sympy",
        "",
        "",
        "",
    ]


def test_a_request_is_its_pieces_its_frame_and_the_margin() -> None:
    estimator = fitted(margin=1.5, bare=1.0, spaced=2.0, frame=10.0)
    assert estimator.count("one two") == 5
    assert estimator.request("one", "one two") == 21


def test_a_word_of_its_own_cost_counts_wherever_it_stands() -> None:
    estimator = fitted(words=(("sympy", 1.5),), bare=1.0, marked=1.0)
    assert estimator.count("sympy") == estimator.count("/sympy") == 3


def test_no_piece_costs_less_than_nothing() -> None:
    assert fitted(words=(("sympy", -9.0),), bare=1.0).count("sympy the") == 0


@given(st.text(), st.text())
def test_features_and_estimator_see_the_same_text(system: str, prompt: str) -> None:
    amounts, _ = features((system, prompt))
    estimator = FittedEstimator(weights=(1.0,) * len(KINDS), words=(), margin=1.0, pairs=200)
    assert estimator.request(system, prompt) == pytest.approx(sum(amounts), abs=1)


def test_at_the_start_a_request_is_its_pieces_times_a_factor() -> None:
    assert (
        InitialEstimator(factor=1.3).request("a", "b c") == estimate("a") + estimate("b c") + FRAMING_TOKENS
    )


@given(st.text())
def test_the_least_count_is_never_above_the_pieces(text: str) -> None:
    assert 0 <= least_tokens(text) <= count_pieces(text)


def test_the_least_count_lets_three_digits_be_one_token() -> None:
    assert least_tokens("1234567 x") == 3 + 1
