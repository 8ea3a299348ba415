"""A deadline for a whole exchange, also while headers, informational answers or trailers come drop by drop.

httpcore waits anew for each read, and gives nothing back meanwhile: what limits a read does not limit an answer.
"""

import contextlib
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Any

CONNECTED = "connection.connect_tcp.complete"
"""The event of httpcore's `trace` extension that brings the connection."""


class Deadline:
    """Cuts the connection of one exchange when its time is over: whoever reads from it then meets its end."""

    def __init__(self) -> None:
        self.passed = False
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._timer: threading.Timer | None = None

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Notes the connection; to be the exchange's `trace` extension."""
        if event == CONNECTED:
            with self._lock:
                self._socket = info["return_value"].get_extra_info("socket")
            if self.passed:
                self._cut()

    def set(self, seconds: float) -> None:
        """The time is over in so many seconds from now, whatever was set before."""
        self._cancel()
        self._timer = threading.Timer(seconds, self._pass)
        self._timer.daemon = True
        self._timer.start()

    def _pass(self) -> None:
        self.passed = True
        self._cut()

    def _cut(self) -> None:
        with self._lock:
            if self._socket is not None:
                with contextlib.suppress(OSError):  # it was closed meanwhile
                    self._socket.shutdown(socket.SHUT_RDWR)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def end(self) -> None:
        """The exchange is over: nothing is cut any more."""
        self._cancel()
        with self._lock:
            self._socket = None


@contextlib.contextmanager
def within(seconds: float) -> Iterator[Deadline]:
    """A deadline so many seconds from now, for the exchange in the body."""
    deadline = Deadline()
    deadline.set(seconds)
    try:
        yield deadline
    finally:
        deadline.end()
