"""Probing whether a server refuses a prompt beyond its window; older ones cut it without a word."""

from datetime import datetime, timedelta
from typing import Protocol

from msgspec import Struct

from clean_room_agent.errors import ModelError, TruncatingServer, WindowExceeded
from clean_room_agent.llm import token_estimator
from clean_room_agent.llm.router import ModelConfig
from clean_room_agent.llm.transport import RawAnswer

PROBE_NAME = "window_probe"
"""The call type under which the record keeps probes."""
UNNAMED_DAYS = 7
"""So long what was found counts for a model that may have become another one under its name."""


class WindowProbe(Struct, frozen=True, kw_only=True):
    """What a server did with a prompt that is too long."""

    refused: bool
    """False: it answered, so it cut, unless it counted all of the prompt."""
    server_window: int | None
    """The window that it named in its refusal, in tokens."""
    read_whole: bool = False
    """It answered, and counted no fewer tokens than the prompt has: its window is larger than configured."""

    @property
    def proven(self) -> bool:
        """Whether a prompt within the configured window is never cut."""
        return self.refused or self.read_whole


class ProbedServer(Struct, frozen=True, kw_only=True):
    """Whom a proof is about."""

    provider: str
    base_url: str
    model: str
    model_digest: str
    """"" where the server has none."""
    window: int


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
        return WindowProbe(refused=False, server_window=None, read_whole=whole)
    if raw.refusal is None:
        raise raw.error
    window = raw.refusal.window
    if window is not None and window < model.window:
        raise small_window_error(window, model.tag, model.window)
    return WindowProbe(refused=True, server_window=window)


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
