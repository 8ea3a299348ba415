"""A model call: one request and its answer, as the record keeps every call, and what follows a call while it runs.

A call consists of parts, by their readers: where it was asked (replay, the report), which model answered, what was sent,
what was answered, how it ended, and what it cost. A sink records each call before its answer is read. Watchers are told
of its progress; they return nothing, and calls that run at the same time are reported in no particular order.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from clean_room_agent.artifacts.context import Role
from clean_room_agent.artifacts.names import relative_pass
from clean_room_agent.artifacts.prompt_sources import PromptSpan

READ_PER_WRITTEN = 10
"""Tokens that a model reads in the time in which it writes one, without a GPU."""


class AnswerReading(StrEnum):
    """How an answer was read."""

    PARSED = "parsed"
    REPAIRED = "repaired"
    """It was readable, in answer to a request that showed an earlier answer's fault."""
    UNREADABLE = "unreadable"


class CallIdentity(Struct, frozen=True, kw_only=True):
    """What identifies a call when its task is run again."""

    pass_id: str
    """Relative to the task."""
    prompt: str
    item: str
    attempt: int

    def __str__(self) -> str:
        item = f", item {self.item}" if self.item else ""
        return f"pass {self.pass_id or '(task)'}, prompt {self.prompt}{item}, attempt {self.attempt}"


class CallSite(Struct, frozen=True, kw_only=True):
    """Where in a task a call was made."""

    pass_id: str
    stage_name: str = ""
    """The retrieval stage that asked; "" outside of stages."""
    call_type: str
    """The prompt's name."""
    item: str = ""
    """What was asked about; "" for nothing in particular."""
    attempt: int = 0
    """0-based among the calls of one pass, prompt and item; retries and repairs count."""

    @property
    def identity(self) -> CallIdentity:
        """The identity by which a replay finds the call."""
        return CallIdentity(
            pass_id=relative_pass(self.pass_id), prompt=self.call_type, item=self.item, attempt=self.attempt
        )


class CalledModel(Struct, frozen=True, kw_only=True):
    """Which model answered, and which server served it."""

    tag: str
    role: Role
    provider: str
    digest: str = ""
    """The server's digest of the model's files; "" if it gives none."""


class CallRequest(Struct, frozen=True, kw_only=True):
    """What was sent."""

    system_prompt: str
    prompt: str
    prompt_hash: str
    """Hex SHA-256 of what the model was shown."""
    request_body: str
    """The JSON text as it was sent."""
    spans: tuple[PromptSpan, ...] | None = None
    """Where the prompt's lines come from; None for calls that were recorded before this was stored."""


class CallAnswer(Struct, frozen=True, kw_only=True):
    """What was answered."""

    response: str
    """The answer, or as much of it as came."""
    thinking: str = ""
    logprobs: str = ""
    """JSON text of the token probabilities, "" where none were given."""


class CallEnding(Struct, frozen=True, kw_only=True):
    """How the exchange ended."""

    finish: str
    """`stop`, `length`, `repeated`, `copied`, or `error:<class>`."""
    error: str = ""
    """The error's message; "" without one."""
    replayed_from: int | None = None
    """The recorded call that gave the answer, in a replay."""


class CallCost(Struct, frozen=True, kw_only=True):
    """The cost of the call; tokens as the server counted them, None if it did not say."""

    estimated_tokens: int
    """Of the whole request, without the answer, before it was sent."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    """Prompt tokens that the server had cached from an earlier request."""
    latency_ms: int
    timestamp: str
    """When the request was sent, as UTC, ISO 8601."""

    @property
    def read_tokens(self) -> int:
        """Of the prompt: counted, else estimated."""
        return self.estimated_tokens if self.prompt_tokens is None else self.prompt_tokens


class ModelCall(Struct, frozen=True, kw_only=True):
    """One request to a model server and its answer, exactly."""

    id: int = 0
    """In the record; 0 until it is stored."""
    site: CallSite
    model: CalledModel
    request: CallRequest
    answer: CallAnswer
    ending: CallEnding
    cost: CallCost


class CallLimits(Struct, frozen=True, kw_only=True):
    """What the request allowed, in tokens; None if it does not say."""

    window: int | None
    answer: int | None


class CallReading(Struct, frozen=True, kw_only=True):
    """How an answer was read."""

    reading: AnswerReading
    fault: str = ""
    """Why it was unreadable, or what was left out of a readable one; "" for neither."""


class CallSummary(Struct, frozen=True, kw_only=True):
    """A recorded call without its texts."""

    id: int
    site: CallSite
    model: CalledModel
    ending: CallEnding
    cost: CallCost
    limits: CallLimits
    read: CallReading | None
    """None if it was not read."""


class CallSink(Protocol):
    """Records calls."""

    def record(self, call: ModelCall) -> int:
        """Record the call and return its id; it is durable on return."""

    def reading(self, call_id: int, reading: AnswerReading, fault: str) -> None:
        """Record how the call's answer was read, durable at the latest when the next call is recorded.

        `fault`: why the answer was unreadable, or what was left out of a readable one; "" for neither.
        """


class CallStarted(Struct, frozen=True, kw_only=True):
    """A request is about to be sent."""

    number: int
    """From 1, among the requests of this process."""
    prompt: str
    """The prompt's name."""
    item: str
    """What it is about; "" for nothing in particular."""
    model: str
    estimated_tokens: int
    """Of the request, without the answer."""
    max_tokens: int
    """Of the answer."""


class CallProgress(Struct, frozen=True, kw_only=True):
    """A piece of the answer has arrived; servers send one token at a time."""

    number: int


class CallFinished(Struct, frozen=True, kw_only=True):
    """The request and its outcome are recorded."""

    number: int
    call_id: int
    """Its id in the record."""
    prompt: str
    item: str
    model: str
    prompt_tokens: int
    """As the server counted them, else as they were estimated."""
    completion_tokens: int
    seconds: float
    ending: str
    """`stop`, `length`, `repeated` or `copied`, else the error's message."""
    recalled: bool
    """Whether the record answered it, and no model was asked."""


class CallUnreadable(Struct, frozen=True, kw_only=True):
    """The answer could not be used."""

    call_id: int
    fault: str


class ServerAwaited(Struct, frozen=True, kw_only=True):
    """The server is busy, and will be asked again until it has time."""

    said: str
    """What is known about it, with its address."""


CallEvent = CallStarted | CallProgress | CallFinished | CallUnreadable | ServerAwaited
CallWatcher = Callable[[CallEvent], None]
"""Called from any thread; it must not raise."""


def unwatched(event: CallEvent) -> None:
    """Ignore the event."""
    del event


class BiasKey(Struct, frozen=True, kw_only=True):
    """The model, and the words of a prompt, that a bias belongs to."""

    base_url: str
    model: str
    model_digest: str
    """"" where the server has none."""
    prompt: str
    """Its name."""
    prompt_hash: str
    """Of what the model is shown: a changed prompt is measured again."""


class ProbedServer(Struct, frozen=True, kw_only=True):
    """Whom a proof is about."""

    provider: str
    base_url: str
    model: str
    model_digest: str
    """"" where the server has none."""
    window: int
