"""Transports that stand before another one: they decide about each request, and hand on whatever else is asked."""

from collections.abc import Callable

from clean_room_agent.errors import Interrupted
from clean_room_agent.llm.transport import ChatRequest, RawAnswer, Transport


class ForwardingTransport:
    """Answers as the transport inside does; subclasses decide which requests reach it."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    @property
    def provider(self) -> str:
        """The name that the record keeps."""
        return self._inner.provider

    @property
    def live(self) -> bool:
        """Whether a server answers."""
        return self._inner.live

    def send(self, request: ChatRequest) -> RawAnswer:
        """The outcome of one request."""
        return self._inner.send(request)

    def window(self, tag: str) -> int | None:
        """The window that the server gives the model, in tokens."""
        return self._inner.window(tag)

    def count(self, tag: str, system: str, prompt: str) -> int | None:
        """The tokens of a request with these texts, as the server counts them."""
        return self._inner.count(tag, system, prompt)

    def digest(self, tag: str) -> str | None:
        """The digest of the model's files."""
        return self._inner.digest(tag)


class StoppableTransport(ForwardingTransport):
    """Sends nothing any more once `stopped` says so: no question, no repair, no retry, no probe. What is under way ends."""

    def __init__(self, inner: Transport, stopped: Callable[[], bool]) -> None:
        super().__init__(inner)
        self._stopped = stopped

    def send(self, request: ChatRequest) -> RawAnswer:
        """The transport's outcome.

        Raises:
            Interrupted: it was stopped before; nothing was sent.
        """
        if self._stopped():
            raise Interrupted("interrupted before the question was sent")
        return super().send(request)
