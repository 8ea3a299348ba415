"""Reading `config.toml`: a generic loader; each part of the program declares its own slice of the file."""

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from clean_room_agent.errors import ConfigError


class ConfigSlice(BaseModel):
    """One table of `config.toml`. Every field is required, or optional with its default written at the field.

    A field's `description` is the comment that stands beside it in the file that `cra init` writes.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


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
            f"{path} is not valid TOML: {exc}", hint="mend the line that the message names"
        ) from exc


def load_slice(data: Mapping[str, Any], table: str, kind: type[SliceT], *, source: str) -> SliceT:
    """The slice `kind` from the table named `table` ("a" or "a.b"); an absent table is read as empty.

    Raises:
        ConfigError: a key is unknown (with the nearest known one), missing, or has a wrong value.
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


def refuse_unknown_tables(data: Mapping[str, Any], known: Iterable[str], *, source: str) -> None:
    """Nothing happens when every top-level table is known.

    Raises:
        ConfigError: names the first unknown table and the nearest known one.
    """
    names = tuple(known)
    for name in data:
        if name not in names:
            raise ConfigError(f"{source}: unknown table [{name}]{_suggest(name, names)}")


def _explain(exc: ValidationError, table: str, kind: type[ConfigSlice], source: str) -> str:
    lines = []
    for error in exc.errors():
        key = ".".join(str(part) for part in error["loc"]) or table
        where = f"[{table}] {key}"
        if error["type"] == "extra_forbidden":
            *tables, last = map(str, error["loc"])
            lines.append(f"{where}: unknown key{_suggest(last, _keys_at(kind, tables))}")
        elif error["type"] == "missing":
            lines.append(f"{where}: required, and not given")
        else:
            lines.append(f"{where}: {error['msg']}")
    return f"{source}: " + "; ".join(lines)


def _keys_at(kind: type[ConfigSlice], tables: Iterable[str]) -> Iterable[str]:
    """The keys of the table that the names lead to from `kind`; none where they lead to something else."""
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
    return "mend it in the file; `cra init --print` shows every key with its comment"


def _suggest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, tuple(known), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
