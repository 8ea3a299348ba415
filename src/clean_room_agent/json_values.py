"""Values as JSON: conversion of typed values for the record and the session, and back; conversion for `--json`; and
changing each text in a value.
"""

from enum import Enum
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct, structs

ValueT = TypeVar("ValueT")
FLAT: Final = "flat"
"""Annotates a field that is a part of its struct: in JSON, the part's own fields are next to the others."""


def to_plain(value: object) -> Any:
    """The value in lists, tuples, dicts and scalars: structs by field, enumerations by value.

    Raises:
        NotImplementedError: it holds what has no form in JSON, such as a path.
    """
    return msgspec.to_builtins(value, enc_hook=_encode_model)


def to_json(value: object) -> str:
    """The same as compact JSON text."""
    return msgspec.json.encode(value, enc_hook=_encode_model).decode()


def from_plain(plain: object, kind: type[ValueT]) -> ValueT:
    """The inverse of `to_plain`. Fields that `kind` does not have are ignored.

    Raises:
        ValueError: `plain` is not a `kind`; the message says where and why.
    """
    try:
        return msgspec.convert(plain, kind, strict=False, dec_hook=_decode_model)
    except msgspec.ValidationError as exc:
        raise ValueError(str(exc)) from exc


def from_json(text: str | bytes, kind: type[ValueT]) -> ValueT:
    """The inverse of `to_json`. Numbers that JSON lacks, and some programs write, are read, too: NaN and Infinity.

    Raises:
        ValueError: the text is not JSON, or not that of a `kind`; the message says where and why.
    """
    try:
        return msgspec.json.decode(text, type=kind, strict=False, dec_hook=_decode_model)
    except msgspec.ValidationError as exc:
        raise ValueError(str(exc)) from exc
    except (msgspec.DecodeError, UnicodeError, RecursionError) as exc:
        plain = _with_odd_numbers(text)
        if plain is None:
            raise ValueError(str(exc)) from exc
    return from_plain(plain, kind)


def _with_odd_numbers(text: str | bytes) -> Any:
    """The value of a text with NaN or Infinity in it; None if it is not even that."""
    odd = (b"NaN", b"Infinity") if isinstance(text, bytes) else ("NaN", "Infinity")
    if not any(word in text for word in odd):  # type: ignore[operator]
        return None
    import json  # noqa: PLC0415 - every command imports this module, and nearly all JSON is read without it

    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _encode_model(value: Any) -> Any:
    from pydantic import BaseModel  # noqa: PLC0415 - 60 ms, which only a value with a model in it must pay

    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise NotImplementedError(type(value).__name__)


def _decode_model(kind: type, plain: Any) -> Any:
    from pydantic import BaseModel  # noqa: PLC0415 - as above

    if issubclass(kind, BaseModel):
        return kind.model_validate(plain)
    raise NotImplementedError(kind.__name__)


def to_shown(value: object) -> Any:
    """`value` as `--json` and reports show it: the fields of a `FLAT` part next to those of its struct, and text for
    types that JSON lacks.
    """
    if isinstance(value, Struct):
        said: dict[str, Any] = {}
        notes = type(value).__annotations__
        for name in value.__struct_fields__:
            inner = to_shown(getattr(value, name))
            said |= inner if FLAT in getattr(notes.get(name), "__metadata__", ()) else {name: inner}
        return said
    if isinstance(value, dict):
        return {str(key): to_shown(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_shown(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def change_texts(value: Any, change: Any) -> Any:
    """`value` with `change` applied to each text in it, through structs, dicts, lists and tuples; enumerations are
    kept.
    """
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
