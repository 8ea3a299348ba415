"""The stand-in model server with a stop watch: when each chat request came, and how long the server kept it."""

import time
from typing import Any, Self

from msgspec import Struct

from testing.servers.ollama_script import Answerer
from testing.servers.ollama_server import OllamaServer, _Handler


class Visit(Struct, frozen=True, kw_only=True):
    """One chat request, in seconds of the monotonic clock."""

    came: float
    """Its first line was read."""
    left: float
    """The last byte of its answer was written."""
    answered: bool
    """Whether it reached the model; the probe of a window is refused, and does not."""


class TimedServer(OllamaServer):
    """Keeps `visits`. It runs in the benchmark's process, so that its work is not the measured program's."""

    def __init__(self, script: Answerer) -> None:
        super().__init__(script)
        self.visits: list[Visit] = []
        self._http.RequestHandlerClass = _TimedHandler

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def busy(self) -> float:
        """Seconds for which requests stood at the server, those at the same time counted once."""
        total, until = 0.0, 0.0
        for visit in sorted(self.visits, key=lambda visit: visit.came):
            total += max(0.0, visit.left - max(visit.came, until))
            until = max(until, visit.left)
        return total


class _TimedHandler(_Handler):
    def do_POST(self) -> None:  # noqa: N802 - the base class's name
        came = time.monotonic()
        super().do_POST()
        if self.path == "/api/chat":
            owner: Any = self.server.owner
            answered = getattr(self, "_sent", 0) == 200
            owner.visits.append(Visit(came=came, left=time.monotonic(), answered=answered))

    def send_response(self, code: int, message: str | None = None) -> None:
        self._sent = code
        super().send_response(code, message)
