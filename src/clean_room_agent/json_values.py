"""Typed values as JSON, the way the record and the session keep them, and back."""

from typing import Any, TypeVar

import msgspec

ValueT = TypeVar("ValueT")


def to_plain(value: object) -> Any:
    """The value in lists, tuples, dicts and scalars: structs by field, enumerations by value, paths as text."""
    return msgspec.to_builtins(value, enc_hook=_plain)


def to_json(value: object) -> str:
    """The same as compact JSON text."""
    return msgspec.json.encode(value, enc_hook=_plain).decode()


def from_plain(plain: object, kind: type[ValueT]) -> ValueT:
    """The inverse of `to_plain`. Fields that `kind` does not have are ignored.

    Raises:
        ValueError: `plain` is no `kind`; says where and why.
    """
    try:
        return msgspec.convert(plain, kind, strict=False, dec_hook=_typed)
    except msgspec.ValidationError as exc:
        raise ValueError(str(exc)) from exc


def from_json(text: str, kind: type[ValueT]) -> ValueT:
    """The inverse of `to_json`.

    Raises:
        ValueError: the text is no JSON, or not that of a `kind`; says where and why.
    """
    try:
        return msgspec.json.decode(text, type=kind, strict=False, dec_hook=_typed)
    except msgspec.DecodeError as exc:
        raise ValueError(str(exc)) from exc


def _plain(value: Any) -> Any:
    from pydantic import BaseModel  # noqa: PLC0415 - 60 ms, which only a value with a model in it must pay

    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise NotImplementedError(type(value).__name__)


def _typed(kind: type, plain: Any) -> Any:
    from pydantic import BaseModel  # noqa: PLC0415 - as above

    if issubclass(kind, BaseModel):
        return kind.model_validate(plain)
    raise NotImplementedError(kind.__name__)
