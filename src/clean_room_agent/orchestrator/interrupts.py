"""Ctrl-C: work that can be done again is broken off at once, a change that is being made is finished first."""

import contextlib
from collections.abc import Iterator


class Interrupts:
    """What a signal handler of the main thread tells, and what the main thread must not be broken off in."""

    def __init__(self) -> None:
        self._shields = 0
        self._asked = 0

    def ask(self) -> None:
        """The run ends: now, or at the end of the change that is being made. Asked twice: now.

        Raises:
            KeyboardInterrupt: now.
        """
        self._asked += 1
        if not self._shields or self._asked > 1:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def shield(self) -> Iterator[None]:
        """What stands inside is finished before the first request to end is heard; shields may stand inside shields."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
        if self._asked and not self._shields:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def closing(self) -> Iterator[None]:
        """As `shield`, for what ends a run: a request that came meanwhile is one for what is over."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
