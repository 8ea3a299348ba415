"""Reads `config.toml`: a generic loader; each part of the program declares its own table."""

import difflib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from clean_room_agent.errors import ConfigError


class ConfigSlice(BaseModel):
    """One table of `config.toml`. Every field is required, or optional with its default written at the field.

    A field's `description` is the comment next to it in the file that `cra init` writes.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


WRONG = "fix it in the file; `cra init --print` shows every key with its comment"
SliceT = TypeVar("SliceT", bound=ConfigSlice)


def read_toml(path: Path) -> dict[str, Any]:
    """The file's tables.

    Raises:
        ConfigError: the file is missing, unreadable or not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as exc:
        raise ConfigError(f"no configuration at {path}", hint="run `cra init` in the repository") from exc
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError(f"cannot read {path}: {exc}") from exc
    except (
        ValueError,
        RecursionError,
    ) as exc:  # tomllib lets numbers of many digits and deep nesting through
        raise ConfigError(
            f"{path} is not valid TOML: {exc}", hint="fix the line that the message names"
        ) from exc


def with_entry(text: str, table: str, key: str, value: str | None) -> str:
    """The TOML `text` with the string `value` at `key` of `table` ("a.b"); None removes the key.

    One line changes, or is added or removed; everything else, comments included, stays byte for byte. The new text is
    parsed to check that it changes exactly that.

    Raises:
        ConfigError: the table is written in a form that no single line can change.
    """
    edited = _edited(text.splitlines(keepends=True), table, key, value)
    wanted: dict[str, Any] = tomllib.loads(text)
    section = wanted
    for name in table.split("."):
        section = section.setdefault(name, {})
    section.pop(key, None)
    if value is not None:
        section[key] = value
    try:
        found = tomllib.loads(edited)
    except ValueError:
        found = {}
    if _without_empty(found) != _without_empty(wanted):
        line = f"take {key} out" if value is None else f"set {key} = {json.dumps(value)}"
        raise ConfigError(
            f"[{table}] cannot be changed line by line as it is written",
            hint=f"{line} by hand, or write [{table}] as a table of its own",
        )
    return edited


def _edited(lines: list[str], table: str, key: str, value: str | None) -> str:
    entry = f"{key} = {json.dumps(value, ensure_ascii=False)}"
    header = re.compile(rf"\s*\[\s*{re.escape(table)}\s*\]\s*(#.*)?$")
    begin = next((place + 1 for place, line in enumerate(lines) if header.match(line)), None)
    if begin is None:
        ends = "" if not lines or lines[-1].endswith("\n") else "\n"
        return "".join(lines) + ("" if value is None else f"{ends}\n[{table}]\n{entry}\n")
    end = next(
        (place for place in range(begin, len(lines)) if lines[place].lstrip().startswith("[")), len(lines)
    )
    own = re.compile(
        rf"""\s*(?:{re.escape(key)}|"{re.escape(key)}"|'{re.escape(key)}')\s*=[^#"']*(?:"[^"]*"|'[^']*')"""
    )
    place = next((place for place in range(begin, end) if own.match(lines[place])), None)
    if place is None:
        lines[begin - 1] = lines[begin - 1].rstrip("\r\n") + "\n"
        added = [] if value is None else [f"{entry}\n"]
        return "".join([*lines[:begin], *added, *lines[begin:]])
    old = own.match(lines[place])
    assert old is not None
    changed = [] if value is None else [entry + lines[place][old.end() :]]
    return "".join([*lines[:place], *changed, *lines[place + 1 :]])


def _without_empty(value: Any) -> Any:
    """The value without empty tables, since an absent table means the same."""
    if not isinstance(value, dict):
        return value
    kept = {name: _without_empty(each) for name, each in value.items()}
    return {name: each for name, each in kept.items() if each != {}}


def load_slice(data: Mapping[str, Any], table: str, kind: type[SliceT], *, source: str) -> SliceT:
    """The slice `kind` from the table named `table` ("a" or "a.b"); an absent table is read as empty.

    Raises:
        ConfigError: a key is unknown (with the nearest known one), missing, or has an invalid value.
    """
    section: Any = data
    for name in table.split("."):
        section = section.get(name, {}) if isinstance(section, Mapping) else section
    if not isinstance(section, Mapping):
        raise ConfigError(f"{source}: [{table}] must be a table")
    try:
        return kind.model_validate(dict(section))
    except ValidationError as exc:
        raise ConfigError(_explain(exc, table, kind, source), hint=_remedy(exc)) from exc


def check_slice(data: Mapping[str, Any], table: str, kind: type[ConfigSlice], *, source: str) -> None:
    """Validate the values of a table; required ones may be missing.

    Raises:
        ConfigError: a key is unknown, or has an invalid value.
    """
    section = data.get(table, {})
    if not isinstance(section, Mapping):
        raise ConfigError(f"{source}: [{table}] must be a table")
    try:
        kind.model_validate(dict(section))
    except ValidationError as exc:
        if any(error["type"] != "missing" for error in exc.errors()):
            wrong = _explain(exc, table, kind, source, missing=False)
            raise ConfigError(wrong, hint=WRONG) from exc


def laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Both configurations merged key by key; if both have a value, that of `above` counts."""
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        merged[key] = (
            laid_over(under, value) if isinstance(under, Mapping) and isinstance(value, Mapping) else value
        )
    return merged


def refuse_unknown_tables(data: Mapping[str, Any], known: Iterable[str], *, source: str) -> None:
    """Check that every top-level table is known.

    Raises:
        ConfigError: one is not; the message names the first, and the nearest known one.
    """
    names = tuple(known)
    for name in data:
        if name not in names:
            raise ConfigError(f"{source}: unknown table [{name}]{_suggest(name, names)}")


def _explain(
    exc: ValidationError, table: str, kind: type[ConfigSlice], source: str, *, missing: bool = True
) -> str:
    lines = []
    for error in exc.errors():
        if error["type"] == "missing" and not missing:
            continue
        key = ".".join(str(part) for part in error["loc"]) or table
        where = f"[{table}] {key}"
        if error["type"] == "extra_forbidden":
            *tables, last = map(str, error["loc"])
            lines.append(f"{where}: unknown key{_suggest(last, _keys_at(kind, tables))}")
        elif error["type"] == "missing":
            lines.append(f"{where}: required, but missing")
        else:
            lines.append(f"{where}: {error['msg']}")
    return f"{source}: " + "; ".join(lines)


def _keys_at(kind: type[ConfigSlice], tables: Iterable[str]) -> Iterable[str]:
    """The keys of the table that the names lead to from `kind`; none if they lead to something else."""
    for name in tables:
        annotation = kind.model_fields[name].annotation
        inner = [each for each in (annotation, *get_args(annotation)) if isinstance(each, type)]
        found = [each for each in inner if issubclass(each, ConfigSlice)]
        if not found:
            return ()
        kind = found[0]
    return kind.model_fields


def _remedy(exc: ValidationError) -> str:
    if any(error["type"] == "missing" for error in exc.errors()):
        return "add it to the file, or run `cra init` to have every required value written"
    return WRONG


def _suggest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, tuple(known), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
