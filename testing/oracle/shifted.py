"""An oracle that is biased, as small models are: it says no to everything, and only its probabilities tell what it knows.

Its verdicts are `shifted`: right in their order, all of them too low; or they are right in 70 of 100 `pairs` of something
that matters and something that does not. What it answers about nothing at all stands in between.
"""

import random
from collections.abc import Callable

from clean_room_agent.llm.probes import NOTHING
from testing.oracle.oracle import judged, options
from testing.servers.ollama_script import Answer, Answerer, ChatCall

LOWEST, HIGHEST = 0.2, 0.45
"""Between these lies the probability of every yes: what was measured of a model of 135M was between .28 and .46."""
NEUTRAL = 0.31
"""Of a yes about nothing."""
MARGIN = 0.02
"""So far from it are, at least, verdicts that are right in their order."""
SPREAD = 0.035
"""Standard deviation of verdicts that are not always."""
APART = 0.7416 * SPREAD
"""Between the means of what matters and of what does not: .7 of the pairs are then in order, as the difference of two such
draws is above 0 with the probability Phi(APART / (SPREAD * sqrt(2)))."""
OTHER = 0.05
"""Of three words, for the one that is neither the oracle's own nor a no."""
WORDS = {"yes": ("yes", "no"), "no": ("yes", "no"), "change": ("change", "skip"), "read": ("read", "skip"), "skip": ("change", "skip")}  # fmt: skip
"""For each verdict of the oracle, the word that would let something in and the one that leaves it out."""

Draw = Callable[[bool, random.Random], float]
"""The probability of a yes about something that matters, or does not."""


def in_order(matters: bool, chance: random.Random) -> float:
    """Always higher for what matters."""
    return chance.uniform(NEUTRAL + MARGIN, HIGHEST) if matters else chance.uniform(LOWEST, NEUTRAL - MARGIN)


def in_most_pairs(matters: bool, chance: random.Random) -> float:
    """Higher for what matters in 70 of 100 pairs."""
    drawn = chance.gauss(NEUTRAL + (APART if matters else -APART) / 2, SPREAD)
    return min(max(drawn, LOWEST), HIGHEST)


class ShiftedOracle:
    """Answers as `oracle` does, but for one-word verdicts, which are always no, with probabilities by `draw`.

    They depend on `seed` and on what is asked about alone.
    """

    def __init__(self, oracle: Answerer, draw: Draw, *, seed: str) -> None:
        self._oracle = oracle
        self._draw = draw
        self._seed = seed

    def __call__(self, call: ChatCall) -> Answer | str:
        """The oracle's answer, or its verdict as probabilities."""
        answer = self._oracle(call)
        if not isinstance(answer, str) or answer not in WORDS or not options(call.prompt):
            return answer  # also where a verdict is about no candidate: the goal check's
        item = judged(call.prompt)
        chance = random.Random(f"{self._seed}\n{call.title}\n{item}")
        yes, no = WORDS[answer]
        share = NEUTRAL if item == NOTHING else self._draw(answer != no, chance)
        if no == "no":
            return Answer(text=no, likely=((no, 1 - share), (yes, share)))
        third = "read" if yes == "change" else "change"
        return Answer(text=no, likely=((no, 1 - OTHER - share), (yes, share), (third, OTHER)))
