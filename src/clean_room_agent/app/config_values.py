"""The file of the configuration: every value with its source, the text that `cra init` writes, and changes of one value that
keep its comments.
"""

import contextlib
import difflib
import textwrap
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import tomli_w
from msgspec import Struct

from clean_room_agent.app import wiring
from clean_room_agent.app.settings import (
    TABLES,
    check_tables,
    has_user_config,
    read_user_config,
    user_config_file,
)
from clean_room_agent.config import (
    WRONG,
    ConfigSlice,
    Key,
    keys_of,
    laid_over,
    load_toml,
    parse_toml,
    read_toml,
    with_value,
)
from clean_room_agent.errors import ConfigError, UsageError
from clean_room_agent.file_contents import atomic_write, decode
from clean_room_agent.workspace import Workspace, hold, private_folder

Source = Literal["default", "user", "repository", "not set"]
CONFIG_HINT = "let XDG_CONFIG_HOME name a folder that can be written"
USER_HEADER = """\
# For all repositories of this user; what a repository's own .clean_room/config.toml overrides it.
# `cra config` shows every key with what it is for.
"""


class ConfiguredValue(Struct, frozen=True, kw_only=True):
    """One value."""

    key: str
    """Tables and key, joined by dots."""
    value: Any
    """In TOML's types; None if nothing sets it."""
    source: Source
    required: bool
    description: str


def list_values(workspace: Workspace | None) -> tuple[ConfiguredValue, ...]:
    """Every key, in the order of the written file; without a repository, only the user's values.

    Raises:
        ConfigError: a file cannot be read, or has an unknown key or an invalid value.
    """
    user = read_user_config()
    own: dict[str, Any] = {}
    if workspace is not None and workspace.config.exists():
        own = read_toml(workspace.config)
        check_tables(laid_over(user, own), source=str(workspace.config))
    return tuple(
        value
        for name, kind in TABLES.items()
        for value in _table_values(name, kind, user.get(name, {}), own.get(name, {}))
    )


def default_values() -> tuple[ConfiguredValue, ...]:
    """Every key with a fixed name, in the order of the written file, as it is where nothing sets it."""
    return tuple(value for name, kind in TABLES.items() for value in _table_values(name, kind, {}, {}))


def find_values(workspace: Workspace | None, key: str) -> tuple[ConfiguredValue, ...]:
    """The value of the key, or the values of the table, of that name.

    Raises:
        UsageError: there is no such key.
        ConfigError: as `list_values`.
    """
    known = list_values(workspace)
    found = tuple(each for each in known if each.key == key or each.key.startswith(f"{key}."))
    if not found:
        raise _unknown_key_error(key, known)
    return found


def set_value(workspace: Workspace | None, key: str, text: str) -> tuple[Path, Any]:
    """Set the key in the file to the value in `text`, as TOML or as plain words, keeping every comment; returns the
    path and the value.

    Without a repository, the file is the user's. Nothing is written unless the value is valid.

    Raises:
        UsageError: there is no such key, or no configuration in the repository yet.
        ConfigError: the value is invalid, or the file cannot be changed.
    """
    first, *others = _possible_values(text)
    try:
        return _write_value(workspace, key, first), first
    except ConfigError:
        for words in others:
            with contextlib.suppress(ConfigError):
                return _write_value(workspace, key, words), words
        raise


def unset_value(workspace: Workspace | None, key: str) -> Path:
    """Remove the key from the file, so that the configuration below it applies, or the default; returns the file's
    path.

    Raises:
        UsageError: there is no such key, or the file does not set it.
        ConfigError: the file cannot be changed.
    """
    return _write_value(workspace, key, None)


def _table_values(
    name: str,
    kind: type[ConfigSlice],
    user: Mapping[str, Any],
    own: Mapping[str, Any],
    *,
    needed: bool = True,
) -> Iterator[ConfiguredValue]:
    """The values of a table; only a table that is `needed` or present has required values."""
    for key in keys_of(kind).values():
        full = f"{name}.{key.name}"
        if key.table is not None:
            given = user.get(key.name) or {}, own.get(key.name) or {}
            yield from _table_values(full, key.table, *given, needed=key.required or any(given))
        elif isinstance(key.default, dict):
            given = user.get(key.name, {}), own.get(key.name, {})
            for each in sorted({*given[0], *given[1]}):
                source, value = _effective_value(each, *given, None)
                yield ConfiguredValue(
                    key=f"{full}.{each}",
                    value=value,
                    source=source,
                    required=False,
                    description=key.description,
                )
        else:
            source, value = _effective_value(key.name, user, own, plain_value(key.default))
            yield ConfiguredValue(
                key=full,
                value=value,
                source=source,
                required=needed and key.required,
                description=key.description,
            )


def _effective_value(
    key: str, user: Mapping[str, Any], own: Mapping[str, Any], default: Any
) -> tuple[Source, Any]:
    if key in own:
        return "repository", own[key]
    if key in user:
        return "user", user[key]
    return ("not set" if default is None else "default"), default


def plain_value(value: Any) -> Any:
    """The value in types of TOML and JSON."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list | frozenset | set):
        each = [plain_value(item) for item in value]
        return sorted(each) if isinstance(value, frozenset | set) else each
    return str(value) if isinstance(value, Path) else value


def _possible_values(text: str) -> tuple[Any, ...]:
    """The possible meanings of the text: a TOML value, and the plain words."""
    try:
        found = load_toml(f"value = {text}")
    except (ValueError, RecursionError):
        return (text,)
    if found.keys() != {"value"}:
        return (text,)
    return (found["value"],) if isinstance(found["value"], str) else (found["value"], text)


def _write_value(workspace: Workspace | None, key: str, value: Any) -> Path:
    path = user_config_file() if workspace is None else workspace.config
    *tables, name = key.split(".")
    if not _is_known_key(tuple(tables), name):
        raise _unknown_key_error(key, list_values(None))
    if workspace is None:
        has_user_config(path)
        lock = private_folder(path.parent, hint=CONFIG_HINT)
    elif path.exists():
        lock = workspace.adapters_lock  # `cra adapters` changes the same file
    else:
        raise UsageError(
            f"no configuration at {path}", hint="`cra init` writes it; --user is for all repositories"
        )
    with hold(lock, what=str(path)):
        below = {} if workspace is None else read_user_config()
        data = read_toml(path) if path.exists() else {}
        content = path.read_bytes() if path.exists() else USER_HEADER.encode()
        file = decode(content, max_bytes=len(content))
        if name not in _table_of(data, tables, path) and value is None:
            raise UsageError(
                f"{path} does not set {key}", hint="`cra config` shows where each value comes from"
            )
        after = with_value(file.text, tables, name, value)
        check_tables(laid_over(below, parse_toml(after)), source=key)
        atomic_write(path, file.encode(after), private=True)
    return path


def _is_known_key(tables: tuple[str, ...], name: str) -> bool:
    """Whether there is such a key; in a table with free names, every name is one."""
    if not tables or tables[0] not in TABLES:
        return False
    kind: type[ConfigSlice] = TABLES[tables[0]]
    for place, table in enumerate(tables[1:], start=1):
        key = keys_of(kind).get(table)
        if key is None:
            return False
        if key.table is None:
            return place == len(tables) - 1 and isinstance(key.default, dict)
        kind = key.table
    known = keys_of(kind).get(name)
    return known is not None and known.table is None


def _table_of(data: Mapping[str, Any], tables: list[str], path: Path) -> Mapping[str, Any]:
    """The table's keys; none if it is not there. Raises ConfigError if something else has its name."""
    for place, name in enumerate(tables, start=1):
        data = data.get(name, {})
        if not isinstance(data, Mapping):
            raise ConfigError(f"{path}: [{'.'.join(tables[:place])}] must be a table", hint=WRONG)
    return data


def _unknown_key_error(key: str, known: tuple[ConfiguredValue, ...]) -> UsageError:
    names = [each.key for each in known]
    ends = [name for name in names if name.endswith(f".{key}")]
    near = ends or difflib.get_close_matches(key, names, n=1)
    meant = f"; did you mean {' or '.join(near)}?" if near else ""
    return UsageError(f"there is no key {key!r}{meant}", hint="`cra config` lists every key")


def workspace_or_none(repo: Path) -> Workspace | None:
    """The repository's workspace; None outside of any repository."""
    here = repo.absolute()
    return wiring.workspace_of(repo) if any((at / ".git").exists() for at in (here, *here.parents)) else None


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
    values: Mapping[str, Mapping[str, Any]] | None, below: Mapping[str, Mapping[str, Any]] = NOTHING
) -> str:
    """The text of a configuration with `values` by table and key, as far as these are required or differ from what would apply
    without them; for None, with every key and its default, one without a default as a comment.

    A required key is written as a comment if `values` lacks it, or if the configuration `below` this one has the same value.
    """
    blocks = [WHOLE_HEADER if values is None else HEADER]
    for name, kind in TABLES.items():
        given = None if values is None else values.get(name, {})
        blocks.extend(_table_blocks(name, kind, given, below.get(name, {})))
    return "\n".join(blocks)


def _table_blocks(
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
                nested.extend(
                    _nested_blocks(f"{name}.{key.name}", key, inner, below.get(key.name) or NOTHING)
                )
        elif isinstance(key.default, dict):
            if values is None or inner:
                nested.extend(_free_table(f"{name}.{key.name}", key, inner))
        elif values is None or key.required or _is_own(key, given, below):
            lines.append(_render_entry(key, given, below))
    return [f"[{name}]\n" + "\n".join(lines) + "\n", *nested] if lines or values is None else nested


def _nested_blocks(
    name: str, key: Key, values: Mapping[str, Any] | None, below: Mapping[str, Any]
) -> list[str]:
    """The blocks of a table in another one; none if it would only say what applies without it."""
    assert key.table is not None
    blocks = _table_blocks(name, key.table, values, below) or ([f"[{name}]\n"] if key.default is None else [])
    described = f"    # {key.description}" if key.description else ""
    return [block.replace("]", f"]{described}", 1) if block is blocks[0] else block for block in blocks]


def _is_own(key: Key, values: Mapping[str, Any], below: Mapping[str, Any]) -> bool:
    """Whether there is a value, and another one than what applies without it."""
    inherited = plain_value(below.get(key.name, key.default))
    return key.name in values and plain_value(values[key.name]) != inherited


def _unset_table(name: str, key: Key, kind: type[ConfigSlice]) -> str:
    keys = "".join(f"#   {inner.name}: {inner.description}\n" for inner in keys_of(kind).values())
    return f"# [{name}]    # {key.description or 'optional'}\n{keys}"


def _free_table(name: str, key: Key, values: Mapping[str, Any] | None) -> list[str]:
    whole: dict[str, Any] = dict(values or {})
    for part in reversed(name.split(".")):
        whole = {part: whole}
    body = tomli_w.dumps(whole).replace(f"[{name}]\n", "", 1)
    return [f"[{name}]    # {key.description}\n{body}"]


def _render_entry(key: Key, values: Mapping[str, Any], below: Mapping[str, Any]) -> str:
    value = values.get(key.name, below.get(key.name, key.default))
    line = f"# {key.name} =" if value is None else tomli_w.dumps({key.name: plain_value(value)}).strip()
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


def write_config(
    workspace: Workspace, values: dict[str, dict[str, Any]], below: Mapping[str, Mapping[str, Any]] = NOTHING
) -> None:
    """Write the configuration atomically; values that the user-wide one (`below`) has are written as comments."""
    workspace.create()
    atomic_write(workspace.config, render_config(values, below), private=True)
