"""Who is told of a model call: the record, before anybody reads the answer, and whoever watches, while it is under way.

Nothing comes back from those who watch, and no order between calls that are under way at the same time is promised. The llm
package knows no database.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from clean_room_agent.artifacts.model_calls import AnswerReading, ModelCall


class CallSink(Protocol):
    """Keeps calls."""

    def record(self, call: ModelCall) -> int:
        """The new call's id; the call is durable on return."""

    def reading(self, call_id: int, reading: AnswerReading, fault: str) -> None:
        """Notes how the call's answer was read, durably no later than the next call is recorded.

        `fault`: why the answer was unreadable, or what of a readable one was left out; "" for neither.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CallProgress:
    """A piece of the answer has come; servers send a token at a time."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFinished:
    """The request and what came of it stand in the record."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class CallUnreadable:
    """The answer was of no use."""

    call_id: int
    fault: str


CallEvent = CallStarted | CallProgress | CallFinished | CallUnreadable
CallWatcher = Callable[[CallEvent], None]
"""Called from any thread; it must not raise."""


def unwatched(event: CallEvent) -> None:
    """Nobody watches."""
    del event
