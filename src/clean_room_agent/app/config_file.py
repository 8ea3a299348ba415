"""Writes `config.toml` with every key, each with its comment and the given or default value."""

import textwrap
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import tomli_w

from clean_room_agent.app.settings import TABLES
from clean_room_agent.config import ConfigSlice, Key, keys_of

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
    for key in keys_of(kind).values():
        if key.table is not None:
            nested.extend(_nested(f"{name}.{key.name}", key, key.table, values, below))
        elif isinstance(key.default, dict):
            nested.extend(_free_table(f"{name}.{key.name}", key, values.get(key.name)))
        else:
            lines.append(_entry(key, values, below))
    return ["\n".join(lines) + "\n", *nested]


def _nested(
    name: str, key: Key, kind: type[ConfigSlice], values: Mapping[str, Any], below: Mapping[str, Any]
) -> list[str]:
    given = values.get(key.name)
    if given is None and key.default is None:
        keys = "".join(f"#   {inner.name}: {inner.description}\n" for inner in keys_of(kind).values())
        return [f"# [{name}]    # {key.description or 'optional'}\n{keys}"]
    head, *rest = _table(name, kind, given or {}, below.get(key.name) or {})
    described = f"    # {key.description}" if key.description else ""
    return [head.replace("]", f"]{described}", 1), *rest]


def _free_table(name: str, key: Key, values: Mapping[str, Any] | None) -> list[str]:
    whole: dict[str, Any] = dict(values or {})
    for part in reversed(name.split(".")):
        whole = {part: whole}
    body = tomli_w.dumps(whole).replace(f"[{name}]\n", "", 1)
    return [f"[{name}]    # {key.description}\n{body}"]


def _entry(key: Key, values: Mapping[str, Any], below: Mapping[str, Any]) -> str:
    value = values.get(key.name, below.get(key.name, key.default))
    line = f"# {key.name} =" if value is None else tomli_w.dumps({key.name: _plain(value)}).strip()
    if key.name in below and value == below[key.name] and "\n" not in line:
        line = f"# {line}"
    if not key.description:
        return line
    if (
        "\n" not in line
        and len(line) < COMMENT_COLUMN
        and len(key.description) + COMMENT_COLUMN < COMMENT_WIDTH + 20
    ):
        return f"{line:<{COMMENT_COLUMN}}# {key.description}"
    comment = "\n".join(f"# {part}" for part in textwrap.wrap(key.description, COMMENT_WIDTH))
    return f"{comment}\n{line}"


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple | frozenset) else value
