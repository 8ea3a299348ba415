"""Threads whose work can be cancelled, since only the main thread receives Ctrl-C."""

import contextlib
import threading
from collections.abc import Iterator
from contextvars import ContextVar

_STOP: ContextVar[threading.Event | None] = ContextVar("stop", default=None)


@contextlib.contextmanager
def stopped_by(stop: threading.Event) -> Iterator[None]:
    """Processes that this thread runs inside are killed as soon as `stop` is set, and KeyboardInterrupt is raised."""
    token = _STOP.set(stop)
    try:
        yield
    finally:
        _STOP.reset(token)


def raise_if_stopped() -> None:
    """Raise if this thread was told to stop.

    Raises:
        KeyboardInterrupt: it was told to stop.
    """
    stop = _STOP.get()
    if stop is not None and stop.is_set():
        raise KeyboardInterrupt
