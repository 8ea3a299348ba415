"""Writes `config.toml`, each key with its comment: what a repository needs, or every key."""

import textwrap
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import tomli_w

from clean_room_agent.app.settings import TABLES
from clean_room_agent.config import ConfigSlice, Key, keys_of
from clean_room_agent.file_contents import atomic_write
from clean_room_agent.workspace import Workspace

COMMENT_WIDTH = 100
COMMENT_COLUMN = 44
HEADER = """\
# Written by `cra init`: what is required, and what differs from the defaults.
# `cra config` shows every other key with its default and what it is for; `cra config set KEY VALUE` adds one.
# An unknown key is an error; a command-line flag overrides the file.
"""
WHOLE_HEADER = """\
# Every key of a configuration: required ones, and those with a default, which a file may leave out.
# An unknown key is an error; a command-line flag overrides the file.
"""
NOTHING: Mapping[str, Any] = MappingProxyType({})


def render_config(
    values: Mapping[str, Mapping[str, Any]], below: Mapping[str, Mapping[str, Any]] = NOTHING
) -> str:
    """The text of a configuration with `values` by table and key, as far as these are required or differ from what would apply
    without them.

    A required key is written as a comment if `values` lacks it, or if the configuration `below` this one has the same value.
    """
    blocks = [HEADER]
    for name, kind in TABLES.items():
        blocks.extend(_table(name, kind, values.get(name, {}), below.get(name, {})))
    return "\n".join(blocks)


def render_whole_config() -> str:
    """The text of a configuration with every key and its default; a key without one is a comment."""
    return "\n".join(
        [
            WHOLE_HEADER,
            *(block for name, kind in TABLES.items() for block in _table(name, kind, None, NOTHING)),
        ]
    )


def _table(
    name: str, kind: type[ConfigSlice], values: Mapping[str, Any] | None, below: Mapping[str, Any]
) -> list[str]:
    """The blocks of a table and of those in it; with every key if `values` is None."""
    lines: list[str] = []
    nested: list[str] = []
    given = NOTHING if values is None else values
    for key in keys_of(kind).values():
        inner = given.get(key.name)
        if key.table is not None:
            if values is None and key.default is None:
                nested.append(_unset_table(f"{name}.{key.name}", key, key.table))
            elif values is None or inner is not None:
                nested.extend(_nested(f"{name}.{key.name}", key, inner, below.get(key.name) or NOTHING))
        elif isinstance(key.default, dict):
            if values is None or inner:
                nested.extend(_free_table(f"{name}.{key.name}", key, inner))
        elif values is None or key.required or _differs(key, given, below):
            lines.append(_entry(key, given, below))
    return [f"[{name}]\n" + "\n".join(lines) + "\n", *nested] if lines or values is None else nested


def _nested(name: str, key: Key, values: Mapping[str, Any] | None, below: Mapping[str, Any]) -> list[str]:
    """The blocks of a table in another one; none if it would only say what applies without it."""
    assert key.table is not None
    blocks = _table(name, key.table, values, below) or ([f"[{name}]\n"] if key.default is None else [])
    described = f"    # {key.description}" if key.description else ""
    return [block.replace("]", f"]{described}", 1) if block is blocks[0] else block for block in blocks]


def _differs(key: Key, values: Mapping[str, Any], below: Mapping[str, Any]) -> bool:
    """Whether the value is another one than what applies without it."""
    return key.name in values and _plain(values[key.name]) != _plain(below.get(key.name, key.default))


def _unset_table(name: str, key: Key, kind: type[ConfigSlice]) -> str:
    keys = "".join(f"#   {inner.name}: {inner.description}\n" for inner in keys_of(kind).values())
    return f"# [{name}]    # {key.description or 'optional'}\n{keys}"


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


def write_config(
    workspace: Workspace,
    values: dict[str, dict[str, Any]],
    below: Mapping[str, Mapping[str, Any]] = NOTHING,
) -> None:
    """Write the configuration atomically; values that the user-wide one (`below`) has are written as comments."""
    workspace.create()
    atomic_write(workspace.config, render_config(values, below), private=True)
