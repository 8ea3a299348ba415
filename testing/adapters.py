"""Comparisons of adapters with their bases, drawn at random: what the gate is to say of them is known beforehand."""

import random

from clean_room_agent.training.gate import AnswerPair, Scored

PER_TASK = 3
"""Questions of one task."""
ALIKE = 0.3
"""The share of a score's spread that the questions of one task have in common."""


def graded(seed: int, *, examples: int, better: float, worse: float, base: float = 0.6) -> list[AnswerPair]:
    """Answers that are right or wrong: of all, `better` flip to right and `worse` to wrong; the rest stay."""
    draw = random.Random(seed)
    pairs = []
    for number in range(examples):
        point = draw.random()
        if point < better:
            before, after = 0.0, 1.0
        elif point < better + worse:
            before, after = 1.0, 0.0
        else:
            kept = (base - worse) / (1 - better - worse)
            before = after = float(draw.random() < kept)
        pairs.append(_pair(number, Scored(value=before), Scored(value=after)))
    return pairs


def verdicts(
    seed: int, *, examples: int, base: float, candidate: float, shift: float = 0.0
) -> list[AnswerPair]:
    """Verdicts, a third of them yes: `base` and `candidate` are how far the two classes' scores lie apart, in standard
    deviations; all scores of the candidate are moved by `shift`. 0: no skill at all.

    Both arms share half of their noise, as two models of the same weights do, and questions of one task share some too.
    """
    draw = random.Random(seed)
    pairs = []
    common = 0.0
    for number in range(examples):
        if number % PER_TASK == 0:
            common = draw.gauss(0, ALIKE**0.5)
        truth = draw.random() < 1 / 3
        shared = draw.gauss(0, (0.5 * (1 - ALIKE)) ** 0.5)
        first, second = (
            common + shared + draw.gauss(0, (0.5 * (1 - ALIKE)) ** 0.5) + apart * truth
            for apart in (base, candidate)
        )
        pairs.append(_pair(number, _likely(first), _likely(second + shift), truth))
    return pairs


def _likely(score: float) -> Scored:
    return Scored(yes=1 / (1 + 2.718281828**-score))


def _pair(number: int, base: Scored, candidate: Scored, truth: bool | None = None) -> AnswerPair:
    return AnswerPair(
        key=f"q{number}",
        task=f"t{number // PER_TASK}",
        base=base,
        candidate=candidate,
        truth=truth,
        groups={"repository": f"r{number % 4}"},
    )
