"""Progress callbacks of long operations."""

from collections.abc import Callable
from typing import Protocol

Progress = Callable[[int, int], None]
"""Called with what is done, and with all there is to do."""


class Bar(Protocol):
    """A line that says it, until it is closed."""

    def show(self, done: int, total: int, note: str = "") -> None:
        """`done` of `total` is done; `note` stands behind it."""

    def close(self) -> None:
        """Take the line away."""
