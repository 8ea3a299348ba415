"""Ctrl-C in a run: work that can be repeated is interrupted at once; a change in progress is completed first."""

import contextlib
from collections.abc import Iterator


class Interrupts:
    """Holds back Ctrl-C while the main thread makes a change that must not be left half done."""

    def __init__(self) -> None:
        self._shields = 0
        self._asked = 0

    def ask(self) -> None:
        """Ends the run: now, or when the change in progress is complete. A second call ends it now in any case.

        Raises:
            KeyboardInterrupt: now.
        """
        self._asked += 1
        if not self._shields or self._asked > 1:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def shield(self) -> Iterator[None]:
        """The body completes before the first Ctrl-C takes effect; shields may be nested."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
        if self._asked and not self._shields:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def closing(self) -> Iterator[None]:
        """Like `shield`, for the end of a run: a Ctrl-C that arrives meanwhile has nothing left to interrupt and is ignored."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
