"""The progress line of a long operation."""

from typing import Protocol


class Bar(Protocol):
    """A progress line."""

    def show(self, done: int, total: int, note: str = "") -> None:
        """Show that `done` of `total` is done, followed by `note`."""

    def close(self) -> None:
        """Remove the line."""
