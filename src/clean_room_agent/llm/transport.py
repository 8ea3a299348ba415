"""The transport to whatever answers for a model, a server or a recording: one request, one answer."""

import hashlib
import json
from collections.abc import Callable
from typing import Literal, Protocol

from msgspec import Struct, field

from clean_room_agent.artifacts.model_calls import CallIdentity
from clean_room_agent.errors import ModelError
from clean_room_agent.llm.answer_rules import JsonSchema
from clean_room_agent.llm.answers import TokenChoice
from clean_room_agent.llm.router import ModelConfig

Finish = Literal["stop", "length", "repeated", "copied", "tool_call"]
"""How an answer ended: by itself, at its limit, closed because it repeated itself or what it was shown or copied the
prompt's example, or with the call of a tool, though there are none.
"""


class Sampling(Struct, frozen=True, kw_only=True):
    """How tokens are drawn; the default takes the likeliest one each time."""

    temperature: float = 0.0
    seed: int = 1
    top_k: int = 1
    """0: no bound."""
    top_p: float = 1.0


class Gap(Struct, frozen=True, kw_only=True):
    """Two texts between which one is missing."""

    before: str
    after: str
    stop: tuple[str, ...]
    """What is filled in ends before the first of these."""


class ChatRequest(Struct, frozen=True, kw_only=True):
    """A request in no server's dialect."""

    identity: CallIdentity
    model: ModelConfig
    system: str
    prompt: str
    schema: JsonSchema | None
    wants_logprobs: bool
    max_tokens: int
    sampling: Sampling
    grammar: str = ""
    """What the answer is held to, in GBNF, where the server takes one; "" for none."""
    opening: str = ""
    """How an answer begins that is closed, since it copies the prompt's example (see `answer_rules.CopyGuard`); "" for none."""
    shown: str = ""
    """What the prompt shows that the answer is not about; an answer that only repeats it is closed."""
    gap: Gap | None = None
    """What to fill in, in place of a chat; `prompt` is then how the record shows it."""
    heard: Callable[[], None] = field(default=lambda: None)
    """Called as each piece of the answer comes."""

    @property
    def prompt_hash(self) -> str:
        """Hex SHA-256 of the system text and the prompt."""
        return prompt_hash(self.system, self.prompt)


def prompt_hash(system: str, prompt: str) -> str:
    """Hex SHA-256 of what the model is shown."""
    return hashlib.sha256(f"{system}\0{prompt}".encode("utf-8", "surrogatepass")).hexdigest()


class WindowRefusal(Struct, frozen=True, kw_only=True):
    """The figures of a server that refused a prompt as too long; None where it gives none."""

    prompt_tokens: int | None = None
    window: int | None = None

    @property
    def left(self) -> int:
        """Tokens of the window that the prompt leaves for an answer: above 0 where a shorter answer would fit."""
        if self.prompt_tokens is None or self.window is None:
            return 0
        return max(self.window - self.prompt_tokens, 0)


class RawAnswer(Struct, frozen=True, kw_only=True):
    """What came back. With an `error`, the other fields hold what came before it."""

    request_body: str
    """The JSON text as it was sent (or would have been)."""
    text: str = ""
    thinking: str = ""
    finish: Finish = "stop"
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    """Of the prompt's, those that the server had computed for an earlier request; None where it does not tell."""
    tokens: tuple[TokenChoice, ...] = ()
    error: ModelError | None = None
    refusal: WindowRefusal | None = None
    """Set when the error is that the server refused the prompt as too long."""
    model_digest: str = ""
    """Of the model that answered; "" where it is not known."""
    replayed_from: int | None = None


class Transport(Protocol):
    """Answers requests. What it knows of models is nothing, unless a subclass says otherwise."""

    @property
    def provider(self) -> str:
        """The name that the record keeps."""

    @property
    def live(self) -> bool:
        """Whether a server answers: only then are there waits between retries, and a probe of its window."""

    def send(self, request: ChatRequest) -> RawAnswer:
        """The outcome of one request; what went wrong with the server is its `error`, not an exception.

        Raises:
            ReplayMismatch: a recording holds no such call.
        """

    def window(self, tag: str) -> int | None:  # noqa: ARG002 - subclasses need it
        """The window that the server gives the model, in tokens, whatever is asked for; None where it gives what is
        asked for, or does not tell.

        Raises:
            ModelError: the server does not have the model, or cannot be asked.
        """
        return None

    def count(self, tag: str, system: str, prompt: str) -> int | None:  # noqa: ARG002
        """The tokens of a request with these texts, framing included, as the server counts them; None where it cannot."""
        return None

    def digest(self, tag: str) -> str | None:  # noqa: ARG002
        """The digest of the model's files; "" where the server does not have them; None where it does not tell now."""
        return None


class ServedModel(Struct, frozen=True, kw_only=True):
    """A model that a server offers."""

    tag: str
    digest: str
    size_bytes: int
    forwards_to: str = ""
    """The machine that its prompts are forwarded to; "" where none is known of."""


class ModelDetails(Struct, frozen=True, kw_only=True):
    """What a server knows of a model."""

    tag: str
    context_length: int | None
    """The window it was trained for, in tokens."""
    capabilities: tuple[str, ...]
    served: int | None = None
    """The window that the server gives it, in tokens, where that is the server's choice."""
    forwards_to: str = ""
    """The machine that its prompts are forwarded to; "" where none is known of."""


class ModelLoad(Protocol):
    """A request to a server to load a model."""

    def run(self) -> None:
        """The server holds the model in memory, as questions to it want it.

        Raises:
            ModelError: it cannot load it, or this was cancelled.
        """

    def cancel(self) -> None:
        """End a `run` under way in another thread, and every later one."""


class ModelServer(Transport, Protocol):
    """A server that can be asked about its models too."""

    def version(self) -> str:
        """What it is, as far as it tells, such as `version 0.15.0`.

        Raises:
            ModelError: the server cannot be asked.
        """

    def list_models(self) -> tuple[ServedModel, ...]:
        """What the server has, by tag.

        Raises:
            ModelError: the server cannot be asked.
        """

    def slots(self, tag: str) -> int | None:  # noqa: ARG002 - the signature of those that can
        """How many requests it answers at a time for the model; None where it does not tell."""
        return None

    def loading(self, model: ModelConfig) -> ModelLoad | None:  # noqa: ARG002
        """A request to load the model before a question needs it; None where the server does not load models on demand."""
        return None

    def show(self, tag: str) -> ModelDetails:
        """One model.

        Raises:
            ModelNotFound: the server does not have it.
            ModelError: the server cannot be asked.
        """


def tags_of(server: ModelServer) -> tuple[str, ...]:
    """The tags of what the server has; none if it cannot be asked."""
    try:
        return tuple(model.tag for model in server.list_models())
    except ModelError:
        return ()


def dump_logprobs(choices: tuple[TokenChoice, ...]) -> str:
    """JSON text `[[token, [[token, logprob], ...]], ...]`; "" for none."""
    if not choices:
        return ""
    return json.dumps([[choice.token, choice.top] for choice in choices], separators=(",", ":"))


def load_logprobs(text: str) -> tuple[TokenChoice, ...]:
    """The inverse of `dump_logprobs`."""
    if not text:
        return ()
    return tuple(
        TokenChoice(token=token, top=tuple((likely, logprob) for likely, logprob in top))
        for token, top in json.loads(text)
    )
