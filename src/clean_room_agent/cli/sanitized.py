"""Redacts whole views and events and makes them safe for a terminal, so that no renderer has to."""

from typing import TypeVar

from clean_room_agent.cli.display import Display, current_display
from clean_room_agent.orchestrator.events import Event, Observer
from clean_room_agent.report.values import change_texts

ValueT = TypeVar("ValueT")


class SanitizedView:
    """An `Observer` that hands each event on, made safe for a terminal."""

    def __init__(self, view: Observer, display: Display) -> None:
        self._view = view
        self._display = display

    def notice(self, event: Event) -> None:
        """Hand `event` on."""
        self._view.notice(change_texts(event, self._display.safe))


class RedactedView:
    """An `Observer` that hands each event on without the secrets in it."""

    def __init__(self, view: Observer, display: Display) -> None:
        self._view = view
        self._display = display

    def notice(self, event: Event) -> None:
        """Hand `event` on."""
        self._view.notice(self._display.redacted(event))


def sanitized(value: ValueT) -> ValueT:
    """`value` without secrets, the control characters of every text in it written as escapes."""
    return change_texts(value, current_display().safe)  # type: ignore[no-any-return]
