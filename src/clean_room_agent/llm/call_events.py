"""Protocols for following model calls: the sink that records each before its answer is read, and watchers of a running
call.

Watchers return nothing, and calls that run at the same time are reported in no particular order. The llm package knows
no database.
"""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from clean_room_agent.artifacts.model_calls import AnswerReading, ModelCall


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


CallEvent = CallStarted | CallProgress | CallFinished | CallUnreadable
CallWatcher = Callable[[CallEvent], None]
"""Called from any thread; it must not raise."""


def unwatched(event: CallEvent) -> None:
    """Ignore the event."""
    del event
