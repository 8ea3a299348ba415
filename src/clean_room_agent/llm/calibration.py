"""Fits a token estimator to a model's logged calls: what the prompts consisted of, and what the server counted.

A ridge regression of relative errors. It starts from what common tokenisers share, adjusts the tokens of each kind of
text as far as the calls support it, and gives the words with the largest share in these prompts (a project's own names,
which a vocabulary may split or know) a cost of their own. The same pairs always give the same estimator.
"""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Self

from msgspec import Struct

from clean_room_agent.llm import token_estimator
from clean_room_agent.llm.token_estimator import FULL_PAIRS, KINDS, LEAST_PAIRS, FittedEstimator, features

MOST_PAIRS = 300
"""The newest calls that are looked at."""
FLOOR = 0.095
"""What the margin adds at least: somewhat more than half of a band of 15 %, as an estimate may be off to both sides, and
one that is too low is worse than one that is too high."""
UNSURE = 0.1
"""What it adds beyond that, the fewer calls there are."""
QUANTILE = 0.99
BEYOND = 1.01
"""On top of the quantile, which so few calls do not show exactly."""
BLOCKS = 5
"""The calls are fitted without each fifth of them in turn, which shows how far off the fit is for what it has not seen."""
WORDS = 150
"""Words that get a cost of their own, those first that weigh most."""
WORD_SPREAD = 0.6
KIND_SPREAD = 0.3
NOISE = 0.02
"""How far a word's cost, a kind's tokens (as a share) and a prompt's count (as a share) may be expected to be off."""
START_WEIGHTS = (1.3, 0.92, 1.5, 1.0, 0.04, 0.21, 0.5, 1.0, 0.85, 1.0, 0.2, 1.2, 0.75, 0.25, 16.0)
"""Tokens for one of each of `KINDS`: about the mean of five tokenisers of 32,000 to 256,000 tokens."""

Matrix = list[list[float]]


class Pair(Struct, frozen=True, kw_only=True):
    """A prompt that was sent, and what the server counted."""

    system: str
    prompt: str
    counted: int


class _Row(Struct, frozen=True, kw_only=True):
    """A pair as the fit sees it: shares of the expected tokens, and how far off the expectation was."""

    terms: tuple[tuple[int, float], ...]
    """(unknown, coefficient), by unknown; first the kinds, then the words."""
    error: float


def calibrate(pairs: Sequence[Pair]) -> FittedEstimator | None:
    """Fit an estimator to the newest pairs (in the order of the log); None if too few of them are usable."""
    used = [pair for pair in pairs if token_estimator.can_be_all(pair.counted, pair.system, pair.prompt)][
        -MOST_PAIRS:
    ]
    if len(used) < LEAST_PAIRS:
        return None
    made_of = [features((pair.system, pair.prompt)) for pair in used]
    expected = [_dot(START_WEIGHTS, amounts) for amounts, _ in made_of]
    words = _weighty_words([found for _, found in made_of], expected)
    place = {word: len(KINDS) + number for number, word in enumerate(words)}
    rows = [
        _row(amounts, found, place, base, pair.counted)
        for (amounts, found), base, pair in zip(made_of, expected, used, strict=True)
    ]
    unknowns = len(KINDS) + len(words)
    solution, ratios = _fits(rows, unknowns)
    seen = sorted(ratios)[math.ceil(QUANTILE * len(ratios)) - 1] * BEYOND
    floor = 1 + FLOOR + UNSURE * max(0.0, 1 - len(used) / FULL_PAIRS)
    return FittedEstimator(
        weights=tuple(
            _tidy(start * (1 + KIND_SPREAD * moved))
            for start, moved in zip(START_WEIGHTS, solution, strict=False)
        ),
        words=tuple(sorted((word, _tidy(WORD_SPREAD * solution[number])) for word, number in place.items())),
        margin=_tidy(max(floor, seen)),
        pairs=len(used),
    )


def _weighty_words(found: Sequence[Counter[str]], expected: Sequence[float]) -> list[str]:
    """Of the words in at least two prompts, those with the largest share."""
    share: Counter[str] = Counter()
    prompts: Counter[str] = Counter()
    for words, base in zip(found, expected, strict=True):
        for word, times in words.items():
            share[word] += times / base  # type: ignore[assignment]
            prompts[word] += 1
    common = [word for word, number in prompts.items() if number > 1]
    return sorted(common, key=lambda word: (-share[word], word))[:WORDS]


def _row(
    amounts: Sequence[float], words: Counter[str], place: dict[str, int], base: float, counted: int
) -> _Row:
    kinds = [
        (kind, KIND_SPREAD * START_WEIGHTS[kind] * amount / base)
        for kind, amount in enumerate(amounts)
        if amount
    ]
    own = sorted((place[word], WORD_SPREAD * times / base) for word, times in words.items() if word in place)
    return _Row(terms=(*kinds, *own), error=counted / base - 1)


def _fits(rows: Sequence[_Row], unknowns: int) -> tuple[list[float], list[float]]:
    """The fit to all rows; and for each row, counted over fitted, by a fit to the rows outside its block."""
    edges = [len(rows) * edge // BLOCKS for edge in range(BLOCKS + 1)]
    blocks = [rows[start:end] for start, end in pairwise(edges)]
    sums = [_Sums.of(block, unknowns) for block in blocks]
    ratios = []
    for number, block in enumerate(blocks):
        solution = _Sums.total(sums[:number] + sums[number + 1 :]).solve()
        ratios += [
            (1 + row.error) / max(0.1, 1 + sum(solution[key] * value for key, value in row.terms))
            for row in block
        ]
    return _Sums.total(sums).solve(), ratios


class _Sums(Struct, frozen=True):
    """`A'A` (the lower triangle) and `A'b` of some rows."""

    left: Matrix
    right: list[float]

    @classmethod
    def of(cls, rows: Sequence[_Row], unknowns: int) -> Self:
        left = [[0.0] * (number + 1) for number in range(unknowns)]
        right = [0.0] * unknowns
        for row in rows:
            for place, (key, value) in enumerate(row.terms):
                right[key] += value * row.error
                line = left[key]
                for other, factor in row.terms[: place + 1]:
                    line[other] += value * factor
        return cls(left, right)

    @classmethod
    def total(cls, parts: "Sequence[_Sums]") -> Self:
        left = [
            [sum(cell) for cell in zip(*lines, strict=True)]
            for lines in zip(*(p.left for p in parts), strict=True)
        ]
        return cls(left, [sum(cell) for cell in zip(*(p.right for p in parts), strict=True)])

    def solve(self) -> list[float]:
        """The ridge regression `(A'A + noise²) x = A'b`. Overwrites the sums."""
        for number, line in enumerate(self.left):
            line[number] += NOISE * NOISE
        return _solve(self.left, self.right)


def _solve(left: Matrix, right: list[float]) -> list[float]:
    """Solve `left x = right` by Cholesky decomposition; `left` is the lower triangle, and is overwritten."""
    for number, line in enumerate(left):
        for other in range(number):
            line[other] = (line[other] - _dot(line[:other], left[other])) / left[other][other]
        line[number] = math.sqrt(line[number] - _dot(line[:number], line[:number]))
    forward: list[float] = []
    for number, line in enumerate(left):
        forward.append((right[number] - _dot(forward, line)) / line[number])
    for number in range(len(left) - 1, -1, -1):
        line = left[number]
        forward[number] /= line[number]
        solved = forward[number]
        for other in range(number):
            forward[other] -= line[other] * solved
    return forward


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    """The dot product over as many numbers as the shorter has."""
    return sum(a * b for a, b in zip(one, other, strict=False))


def _tidy(number: float) -> float:
    return round(number, 6)
