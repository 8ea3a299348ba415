"""A model's bias toward one of a prompt's words, whatever it is asked, and what an answer says beyond that.

A small model may say yes to everything with .3 to .45: a bound of .5 then lets nothing in, though the order is of use. How
it answers when it is asked about nothing shows its bias (Zhao et al. 2021, "Calibrate Before Use"), and what counts of
an answer is how far it is from there. With .31 for a yes about nothing, a yes of .42 says

    ln(.42 / .58) - ln(.31 / .69) = -.32 + .80 = +.48

which is more yes than no, and a yes of .28 says -.14.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

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


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedChoice:
    """A choice between the words that let something in and those that do not, beside the model's bias."""

    word: str
    """Of those that let something in, the one that the answer speaks for."""
    probability: float
    """Of that word, as the model gave it."""
    neutral: float | None
    """Of that word, asked about nothing; None where that is not known."""
    score: float
    """Log-odds of that word against the others, less those about nothing: above 0, more yes than no."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasKey:
    """Whose bias, and to which words of a prompt."""

    base_url: str
    model: str
    model_digest: str
    """"" where the server has none."""
    prompt: str
    """Its name."""
    prompt_hash: str
    """Of what the model is shown: a changed prompt is measured anew."""


class BiasStore(Protocol):
    """Keeps what was measured, from one command to the next."""

    def newest(self, key: BiasKey, now: str) -> ModelCall | None:
        """The last measuring call that still holds `now` (see `probe.still_holds`); None where there is none."""

    def keep(self, key: BiasKey, call_id: int, choice: Choice) -> None:
        """The recorded call measured this."""


def needs_bias(choices: Collection[Choice | None], labels: Collection[str]) -> bool:
    """Whether the model's bias could change one of these verdicts: an answer has less than `CLEAR` of its probability, or
    all let something in. (A clear no stays one, as a bias is bounded by `LEAST_BIAS`.) Answers without probabilities
    do not count.
    """
    given = [choice for choice in choices if choice is not None and choice.shares]
    clear = all((choice.confidence or 0.0) >= CLEAR for choice in given)
    return bool(given) and not (clear and any(choice.word not in labels for choice in given))


def calibrate_choice(
    choice: Choice, neutral: Choice | None, labels: Collection[str]
) -> CalibratedChoice | None:
    """The choice beside the bias, where `labels` are the words that let something in; None without probabilities."""
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
    """Whether the score is above the log-odds of the threshold, a probability."""
    if threshold in {0.0, 1.0}:
        return threshold == 0.0
    return score > math.log(threshold / (1 - threshold))


def _bounded(neutral: Choice) -> dict[str, float]:
    raised = {word: max(share, LEAST_BIAS) for word, share in neutral.shares}
    total = sum(raised.values())
    return {word: share / total for word, share in raised.items()}
