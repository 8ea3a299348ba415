"""Whole views made safe for a terminal at once, so that no renderer has to remember it."""

import dataclasses
from enum import Enum
from typing import Any, TypeVar

from clean_room_agent.cli.output import visible
from clean_room_agent.orchestrator.events import Event, Observer

ValueT = TypeVar("ValueT")


class NeutralView:
    """An `Observer` that hands each event on, made safe for a terminal."""

    def __init__(self, view: Observer) -> None:
        self._view = view

    def notice(self, event: Event) -> None:
        """Hand `event` on."""
        self._view.notice(neutral(event))


def neutral(value: ValueT) -> ValueT:
    """`value` with the control characters of every text in it written as escapes; dataclasses and tuples are walked."""
    return _neutral(value)  # type: ignore[no-any-return]


def _neutral(value: Any) -> Any:
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, tuple):
        return tuple(_neutral(item) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        made = (field for field in dataclasses.fields(value) if field.init)
        return dataclasses.replace(
            value, **{field.name: _neutral(getattr(value, field.name)) for field in made}
        )
    return value
