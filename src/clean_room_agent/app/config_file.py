"""Writes `config.toml` with every key, each with its comment and the given or default value."""

import textwrap
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import tomli_w
from pydantic.fields import FieldInfo

from clean_room_agent.app.settings import TABLES
from clean_room_agent.config import ConfigSlice

COMMENT_WIDTH = 100
COMMENT_COLUMN = 44
HEADER = """\
# Written by `cra init`. Every key is here: required ones and those with a default.
# An unknown key is an error; a command-line flag overrides the file.
"""


def render_config(
    values: Mapping[str, Mapping[str, Any]], below: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
) -> str:
    """The text of a configuration with `values` by table and key, and the default for everything else.

    A key is written as a comment if it is required and `values` lacks it, if it has no default value, or if the
    configuration `below` this one has the same value, or the only one.
    """
    blocks = [HEADER]
    for name, kind in TABLES.items():
        blocks.extend(_table(name, kind, values.get(name, {}), below.get(name, {})))
    return "\n".join(blocks)


def _table(
    name: str, kind: type[ConfigSlice], values: Mapping[str, Any], below: Mapping[str, Any]
) -> list[str]:
    lines = [f"[{name}]"]
    nested: list[str] = []
    for key, field in kind.model_fields.items():
        inner = _slice_of(field)
        if inner is not None:
            nested.extend(_nested(f"{name}.{key}", inner, field, values.get(key), below.get(key)))
        elif _is_table(field):
            nested.extend(_free_table(f"{name}.{key}", field, values.get(key)))
        else:
            lines.append(_entry(key, field, values, below))
    return ["\n".join(lines) + "\n", *nested]


def _nested(name: str, kind: type[ConfigSlice], field: FieldInfo, values: Any, below: Any) -> list[str]:
    if values is None and field.get_default(call_default_factory=True) is None:
        keys = "".join(f"#   {key}: {inner.description or ''}\n" for key, inner in kind.model_fields.items())
        return [f"# [{name}]    # {field.description or 'optional'}\n{keys}"]
    head, *rest = _table(name, kind, values or {}, below or {})
    described = f"    # {field.description}" if field.description else ""
    return [head.replace("]", f"]{described}", 1), *rest]


def _free_table(name: str, field: FieldInfo, values: Mapping[str, Any] | None) -> list[str]:
    whole: dict[str, Any] = dict(values or {})
    for part in reversed(name.split(".")):
        whole = {part: whole}
    body = tomli_w.dumps(whole).replace(f"[{name}]\n", "", 1)
    return [f"[{name}]    # {field.description or ''}\n{body}"]


def _entry(key: str, field: FieldInfo, values: Mapping[str, Any], below: Mapping[str, Any]) -> str:
    value = values.get(key, below.get(key, _default(field)))
    line = f"# {key} =" if value is None else tomli_w.dumps({key: _plain(value)}).strip()
    if key in below and value == below[key] and "\n" not in line:
        line = f"# {line}"
    if not field.description:
        return line
    if (
        "\n" not in line
        and len(line) < COMMENT_COLUMN
        and len(field.description) + COMMENT_COLUMN < COMMENT_WIDTH + 20
    ):
        return f"{line:<{COMMENT_COLUMN}}# {field.description}"
    comment = "\n".join(f"# {part}" for part in textwrap.wrap(field.description, COMMENT_WIDTH))
    return f"{comment}\n{line}"


def _default(field: FieldInfo) -> Any:
    return None if field.is_required() else field.get_default(call_default_factory=True)


def _slice_of(field: FieldInfo) -> type[ConfigSlice] | None:
    candidates = (field.annotation, *getattr(field.annotation, "__args__", ()))
    return next(
        (kind for kind in candidates if isinstance(kind, type) and issubclass(kind, ConfigSlice)),
        None,
    )


def _is_table(field: FieldInfo) -> bool:
    return isinstance(_default(field), dict)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple | frozenset) else value
