"""Progress callbacks of long operations."""

from collections.abc import Callable
from typing import Protocol

Progress = Callable[[int, int], None]
"""Called with what is done, and with all there is to do."""


class Bar(Protocol):
    """A progress line."""

    def show(self, done: int, total: int, note: str = "") -> None:
        """Show that `done` of `total` is done, followed by `note`."""

    def close(self) -> None:
        """Remove the line."""
