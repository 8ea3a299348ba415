import math
import random
import time
from collections.abc import Sequence

import pytest

from clean_room_agent.llm.calibration import FLOOR, Pair, calibrate
from clean_room_agent.llm.token_estimator import LEAST_PAIRS, FittedEstimator, can_be_all, pieces_of, word_of

WORDS = (
    "value",
    "return",
    "self",
    "datastructures",
    "request",
    "the",
    "x",
    "zyxxyqq",
    "handle",
    "getElement",
)
MARKS = ("(", ")", " = ", ":\n", "\n    ", ", ", ".", "\n\n")
FRAME = 11


def one_tokeniser(text: str) -> int:
    """Tokens by a made-up vocabulary: one odd word is cut into letters, one long word is known whole."""
    total = 0
    for piece, times in pieces_of(text).items():
        word = word_of(piece)
        each = (
            1
            if word in {"", "datastructures"}
            else len(word)
            if word == "zyxxyqq"
            else math.ceil(len(word) / 6)
        )
        total += each * times
    return total


def prompts(seed: int, number: int) -> list[str]:
    chance = random.Random(seed)
    found = []
    for _ in range(number):
        weights = [chance.random() ** 3 for _ in WORDS]
        size = chance.randrange(100, 800)
        words = chance.choices(WORDS, weights, k=size)
        found.append("".join(word + chance.choice(MARKS) + str(chance.randrange(90)) + " " for word in words))
    return found


def pairs(texts: Sequence[str]) -> list[Pair]:
    return [Pair(system="Be brief.", prompt=text, counted=one_tokeniser(text) + 3 + FRAME) for text in texts]


@pytest.fixture(scope="module")
def known() -> list[Pair]:
    return pairs(prompts(1, 200))


@pytest.fixture(scope="module")
def estimator(known: list[Pair]) -> FittedEstimator:
    found = calibrate(known)
    assert found is not None
    return found


def test_after_200_calls_99_of_100_counts_are_within_15_percent_below_the_bound(
    estimator: FittedEstimator,
) -> None:
    fresh = pairs(prompts(2, 100))
    shares = [pair.counted / estimator.request(pair.system, pair.prompt) for pair in fresh]
    assert sum(0.85 <= share <= 1 for share in shares) >= 99


def test_words_that_a_vocabulary_cuts_up_or_knows_whole_are_learned(estimator: FittedEstimator) -> None:
    extra = dict(estimator.words)
    assert extra["zyxxyqq"] > 2
    assert extra["datastructures"] < 0


def test_the_margin_is_never_below_half_of_the_band(estimator: FittedEstimator) -> None:
    assert 1 + FLOOR <= estimator.margin < 1.15


def test_fewer_calls_make_a_wider_margin(estimator: FittedEstimator, known: list[Pair]) -> None:
    few = calibrate(known[:LEAST_PAIRS])
    assert few is not None
    assert few.margin > estimator.margin
    assert few.pairs == LEAST_PAIRS


def test_too_few_calls_are_no_calibration(known: list[Pair]) -> None:
    assert calibrate(known[: LEAST_PAIRS - 1]) is None


def test_counts_of_prompts_that_were_cut_or_cached_teach_nothing(
    estimator: FittedEstimator, known: list[Pair]
) -> None:
    cut = [Pair(system=pair.system, prompt=pair.prompt, counted=20) for pair in pairs(prompts(3, 60))]
    assert not any(can_be_all(pair.counted, pair.system, pair.prompt) for pair in cut)
    assert calibrate([*cut, *known]) == estimator
    assert calibrate(cut) is None


def test_measuring_a_prompt_of_32_thousand_tokens_takes_milliseconds(estimator: FittedEstimator) -> None:
    text = "\n".join(prompts(4, 120))[:110_000]
    estimator.count(text)
    started = time.process_time()
    estimator.count(text)
    assert time.process_time() - started < 0.5
