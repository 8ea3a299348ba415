"""Probes of a model: whether its server refuses a prompt that exceeds its window (older ones truncate it silently); and
its bias toward one of a prompt's words, by which verdicts are corrected.

A small model may say yes to everything with .3 to .45. A threshold of .5 then lets nothing in, although the order is
useful. How it answers when it is asked about nothing shows its bias (Zhao et al. 2021, "Calibrate Before Use"); what
counts is an answer's distance from there. With .31 for a yes about nothing, a yes of .42 says

    ln(.42 / .58) - ln(.31 / .69) = -.32 + .80 = +.48

which is more yes than no, and a yes of .28 says -.14.
"""

import math
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Protocol

from msgspec import Struct

from clean_room_agent.artifacts.model_calls import BiasKey, ModelCall, ProbedServer
from clean_room_agent.errors import ModelError, TruncatingServer, WindowExceeded
from clean_room_agent.llm import token_estimator
from clean_room_agent.llm.answers import Choice
from clean_room_agent.llm.router import ModelConfig
from clean_room_agent.llm.transport import RawAnswer

NOTHING = "N/A"
"""What a prompt has in place of each thing that it could be about."""
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
PROBE_NAME = "window_probe"
"""The call type under which the record keeps probes."""
UNNAMED_DAYS = 7
"""So long what was found counts for a model that may have become another one under its name."""


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


class BiasStore(Protocol):
    """Keeps measured biases, and how made-up gaps were filled, from one command to the next."""

    def newest(self, key: BiasKey, now: str) -> ModelCall | None:
        """The latest measuring call that is still valid `now` (see `still_holds`), if there is one."""

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
    bias = _bounded_bias(neutral) if neutral is not None and neutral.shares else dict.fromkeys(own, 1.0)
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


def _bounded_bias(neutral: Choice) -> dict[str, float]:
    raised = {word: max(share, LEAST_BIAS) for word, share in neutral.shares}
    total = sum(raised.values())
    return {word: share / total for word, share in raised.items()}


class WindowProbe(Struct, frozen=True, kw_only=True):
    """What a server did with a prompt that is too long."""

    refused: bool
    """False: it answered, so it cut, unless it counted all of the prompt."""
    read_whole: bool = False
    """It answered, and counted no fewer tokens than the prompt has: its window is larger than configured."""

    @property
    def proven(self) -> bool:
        """Whether a prompt within the configured window is never cut."""
        return self.refused or self.read_whole


class ProofStore(Protocol):
    """Keeps which servers were proven, from one command to the next."""

    def newest(self, server: ProbedServer) -> str | None:
        """When it was last proven, UTC ISO 8601; None where it never was."""

    def keep(self, server: ProbedServer, call_id: int) -> None:
        """The server is proven by the recorded call."""


def still_holds(model_digest: str, since: str, now: str) -> bool:
    """Whether what was found of a model counts: always where it is known by its digest, else for `UNNAMED_DAYS`."""
    if model_digest:
        return True
    age = datetime.fromisoformat(now) - datetime.fromisoformat(since)
    return timedelta(0) <= age < timedelta(days=UNNAMED_DAYS)


def oversized_prompt(window: int) -> str:
    """Text of more tokens than the window, by any tokeniser: one word is at least one token."""
    return " x" * (window + window // 8 + 64)


def read_probe(raw: RawAnswer, model: ModelConfig, text: str) -> WindowProbe:
    """What the answer to the oversized prompt `text` shows.

    Raises:
        WindowExceeded: the server runs the model with a smaller window than configured.
        ModelError: the server failed in another way.
    """
    if raw.error is None:
        # An answer of nothing at all is another server's way to drop a prompt, and its count then proves nothing.
        said = bool(raw.text or raw.thinking or raw.completion_tokens)
        whole = (
            said and raw.prompt_tokens is not None and raw.prompt_tokens >= token_estimator.count_pieces(text)
        )
        return WindowProbe(refused=False, read_whole=whole)
    if raw.refusal is None:
        raise raw.error
    window = raw.refusal.window
    if window is not None and window < model.window:
        raise small_window_error(window, model.tag, model.window)
    return WindowProbe(refused=True)


def small_window_error(served: int, tag: str, window: int) -> WindowExceeded:
    """The error for a server that gives the model a smaller window than configured."""
    return WindowExceeded(
        f"the server runs {tag} with a window of {served} tokens, not the configured {window}",
        hint=f"set context_window = {served} or less for this model in [budget], or give it more on the server",
    )


def truncating_error(model: ModelConfig) -> TruncatingServer:
    """The error for a server that answered an oversized prompt."""
    return TruncatingServer(
        f"the server answered a prompt that is longer than {model.tag}'s window of {model.window} tokens: "
        "it silently truncates long prompts",
        hint="update the server (Ollama from 0.12.4 on refuses them; llama-server without --context-shift), or set allow_truncating_server = true in "
        "[models]; then each call's token count is compared with the estimate",
    )


def cut_error(system: str, prompt: str, raw: RawAnswer, model: ModelConfig) -> ModelError | None:
    """The error for a prompt that the server did not read whole, by the count it gave; None where it may have.

    Also a server that refused the probe may come back with other settings while a run is under way. One that gives no count (some leave it out for a cached prompt) proves nothing either way.
    """
    counted = raw.prompt_tokens
    if counted is None:
        return None
    if token_estimator.can_be_all(counted, system, prompt) and counted < model.window:
        return None
    least = token_estimator.least_tokens(system) + token_estimator.least_tokens(prompt)
    return TruncatingServer(
        f"the server read {counted} tokens of a prompt of at least {least} for {model.tag} "
        f"(window {model.window}): it truncated the prompt",
        hint="update the server (Ollama from 0.12.4 on refuses long prompts), or lower context_window in [budget]",
    )
