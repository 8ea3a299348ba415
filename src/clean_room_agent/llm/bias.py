"""A model's bias toward one of a prompt's words, and what an answer says beyond that bias.

A small model may say yes to everything with .3 to .45. A threshold of .5 then lets nothing in, although the order is
useful. How it answers when it is asked about nothing shows its bias (Zhao et al. 2021, "Calibrate Before Use"); what
counts is an answer's distance from there. With .31 for a yes about nothing, a yes of .42 says

    ln(.42 / .58) - ln(.31 / .69) = -.32 + .80 = +.48

which is more yes than no, and a yes of .28 says -.14.
"""

import math
from collections.abc import Collection
from typing import Protocol

from msgspec import Struct

from clean_room_agent.artifacts.model_calls import ModelCall
from clean_room_agent.llm.answers import Choice

NOTHING = "N/A"
"""What stands in a prompt for each thing that it could be about."""
ABOUT_NOTHING = "(nothing)"
"""The item under which the record keeps the measuring call."""
LEAST_BIAS = 0.1
"""A model that is asked about nothing and says no is right, not biased: beyond this share, what it says about nothing is
no longer taken from what it says about something.
"""
CLEAR = 1 / (1 + LEAST_BIAS)
"""From this share on (.909), a no stays a no beside any bias."""
LEAST_SHARE = 1e-6
"""For a word that was not among the likely tokens."""


class CalibratedChoice(Struct, frozen=True, kw_only=True):
    """A choice between words that let something in and words that do not, relative to the model's bias."""

    word: str
    """Of those that let something in, the one that the answer speaks for."""
    probability: float
    """Of that word, as the model gave it."""
    neutral: float | None
    """Of that word, asked about nothing; None where that is not known."""
    score: float
    """Log-odds of that word against the others, less those about nothing: above 0, more yes than no."""


class BiasKey(Struct, frozen=True, kw_only=True):
    """The model, and the words of a prompt, that a bias belongs to."""

    base_url: str
    model: str
    model_digest: str
    """"" where the server has none."""
    prompt: str
    """Its name."""
    prompt_hash: str
    """Of what the model is shown: a changed prompt is measured anew."""


class BiasStore(Protocol):
    """Keeps measured biases from one command to the next."""

    def newest(self, key: BiasKey, now: str) -> ModelCall | None:
        """The latest measuring call that is still valid `now` (see `probe.still_holds`), if there is one."""

    def keep(self, key: BiasKey, call_id: int, choice: Choice) -> None:
        """Store that the recorded call measured this."""


def needs_bias(choices: Collection[Choice | None], labels: Collection[str]) -> bool:
    """Whether the model's bias could change one of these verdicts.

    It could if an answer has less than `CLEAR` of its probability, or if all let something in. (A clear no stays one, since
    a bias is bounded by `LEAST_BIAS`.) Answers without probabilities do not count.
    """
    given = [choice for choice in choices if choice is not None and choice.shares]
    clear = all((choice.confidence or 0.0) >= CLEAR for choice in given)
    return bool(given) and not (clear and any(choice.word not in labels for choice in given))


def calibrate_choice(
    choice: Choice, neutral: Choice | None, labels: Collection[str]
) -> CalibratedChoice | None:
    """The choice relative to the bias; None without probabilities. `labels` are the words that let something in."""
    if not choice.shares:
        return None
    own = dict(choice.shares)
    bias = _bounded(neutral) if neutral is not None and neutral.shares else dict.fromkeys(own, 1.0)
    said = {word: math.log(max(share, LEAST_SHARE)) - math.log(bias[word]) for word, share in own.items()}
    word = max((word for word in said if word in labels), key=said.__getitem__)
    against = max(value for other, value in said.items() if other not in labels)
    return CalibratedChoice(
        word=word,
        probability=own[word],
        neutral=None if neutral is None else dict(neutral.shares).get(word),
        score=said[word] - against,
    )


def lets_in(score: float, threshold: float) -> bool:
    """Whether the score exceeds the log-odds of the threshold (a probability)."""
    if threshold in {0.0, 1.0}:
        return threshold == 0.0
    return score > math.log(threshold / (1 - threshold))


def _bounded(neutral: Choice) -> dict[str, float]:
    raised = {word: max(share, LEAST_BIAS) for word, share in neutral.shares}
    total = sum(raised.values())
    return {word: share / total for word, share in raised.items()}
