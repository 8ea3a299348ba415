"""Values as JSON, and with each text in them changed."""

from enum import Enum
from typing import Any, Final

from msgspec import Struct, structs

FLAT: Final = "flat"
"""Annotates a field that is a part of its struct: in JSON the part's own fields stand beside the others."""


def plain(value: object) -> Any:
    """`value` as what JSON can say."""
    if isinstance(value, Struct):
        said: dict[str, Any] = {}
        notes = type(value).__annotations__
        for name in value.__struct_fields__:
            inner = plain(getattr(value, name))
            said |= inner if FLAT in getattr(notes.get(name), "__metadata__", ()) else {name: inner}
        return said
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def change_texts(value: Any, change: Any) -> Any:
    """`value` with `change` done to each text in it; structs, dicts, lists and tuples are walked, enumerations kept."""
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return change(value)
    if isinstance(value, tuple | list):
        changed = (change_texts(item, change) for item in value)
        return value._make(changed) if hasattr(value, "_make") else type(value)(changed)
    if isinstance(value, dict):
        return {change_texts(key, change): change_texts(item, change) for key, item in value.items()}
    if isinstance(value, Struct):
        new = {name: change_texts(getattr(value, name), change) for name in value.__struct_fields__}
        return structs.replace(value, **new)
    return value
