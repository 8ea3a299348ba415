"""Progress callbacks of long operations."""

from collections.abc import Callable
from typing import Protocol

Progress = Callable[[int, int], None]
"""Called with the amount done, and the total amount."""


class Bar(Protocol):
    """A progress line."""

    def show(self, done: int, total: int, note: str = "") -> None:
        """Show that `done` of `total` is done, followed by `note`."""

    def close(self) -> None:
        """Remove the line."""
