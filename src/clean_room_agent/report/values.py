"""Values as JSON, and with each text in them changed."""

import dataclasses
from collections.abc import Mapping
from enum import Enum
from typing import Any

FLAT: Mapping[str, bool] = {"flat": True}
"""The metadata of a field that is a part of its dataclass: in JSON the part's own fields stand beside the others."""


def plain(value: object) -> Any:
    """`value` as what JSON can say."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        said: dict[str, Any] = {}
        for field in dataclasses.fields(value):
            inner = plain(getattr(value, field.name))
            said |= inner if field.metadata.get("flat") else {field.name: inner}
        return said
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def change_texts(value: Any, change: Any) -> Any:
    """`value` with `change` done to each text in it; dataclasses, dicts, lists and tuples are walked, enumerations kept."""
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return change(value)
    if isinstance(value, tuple | list):
        changed = (change_texts(item, change) for item in value)
        return value._make(changed) if hasattr(value, "_make") else type(value)(changed)
    if isinstance(value, dict):
        return {change_texts(key, change): change_texts(item, change) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        made = (field.name for field in dataclasses.fields(value) if field.init)
        return dataclasses.replace(
            value, **{name: change_texts(getattr(value, name), change) for name in made}
        )
    return value
