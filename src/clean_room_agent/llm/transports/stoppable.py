"""A way to a model that can be closed: what is under way comes to its end, nothing new begins."""

from collections.abc import Callable

from clean_room_agent.errors import Interrupted
from clean_room_agent.llm.transport import ChatRequest, RawAnswer, Transport


class Stoppable:
    """A transport that sends nothing any more once `stopped` says so: no question, no repair, no retry, no probe."""

    def __init__(self, inner: Transport, stopped: Callable[[], bool]) -> None:
        self._inner = inner
        self._stopped = stopped

    @property
    def provider(self) -> str:
        """As the transport inside."""
        return self._inner.provider

    @property
    def live(self) -> bool:
        """As the transport inside."""
        return self._inner.live

    def send(self, request: ChatRequest) -> RawAnswer:
        """The transport's outcome.

        Raises:
            Interrupted: it was stopped before; nothing was sent.
        """
        if self._stopped():
            raise Interrupted("interrupted before the question was sent")
        return self._inner.send(request)

    def window(self, tag: str) -> int | None:
        """As the transport inside."""
        return self._inner.window(tag)

    def count(self, tag: str, system: str, prompt: str) -> int | None:
        """As the transport inside."""
        return self._inner.count(tag, system, prompt)

    def digest(self, tag: str) -> str | None:
        """As the transport inside."""
        return self._inner.digest(tag)
