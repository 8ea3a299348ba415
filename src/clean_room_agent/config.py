"""Reads `config.toml`: a generic loader; each part of the program declares its own table."""

import difflib
import functools
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, Meta, Struct, structs

from clean_room_agent.errors import ConfigError
from clean_room_agent.safe_open import open_named


class ConfigSlice(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of `config.toml`. Every field is required, or optional with its default written at the field.

    A field is annotated with its bounds and a `description`, the comment next to it in the file that `cra init` writes.
    """


class Key(Struct, frozen=True, kw_only=True):
    """One key of a table."""

    name: str
    kind: Any
    """Its type, with its bounds."""
    description: str
    required: bool
    default: Any
    """None if it is required."""
    table: type[ConfigSlice] | None
    """The table of its own that it is, if it is one with fixed keys."""


WRONG = "fix it in the file; `cra init --print` shows every key with its comment"
MISSING = "required, but missing"
UNREADABLE = "it must be a file that you can read"
BYTE_ORDER_MARK = "\ufeff"
MAX_INTEGER = 1 << 63
FEW_DOTS = 500
LONG_KEY = 8
"""Parts of a dotted key from which on they are counted."""
MAX_KEY_WORK = FEW_DOTS**2
TOML_TOKEN = re.compile(
    r'''"""(?:\\.|[^\\])*?(?:"""|\Z)|\'{3}.*?(?:\'{3}|\Z)|\#[^\n]*|(?P<blank>[ \t]+)|(?P<dot>\.)'''
    r"""|(?P<part>[\w-]+|"(?:\\.|[^"\\\n])*"?|\'[^\'\n]*\'?)|.""",
    re.DOTALL,
)
"""Each match begins where the one before ended; `part` is what may be a part of a key."""
NonEmpty = Annotated[str, Meta(min_length=1)]
Positive = Annotated[int, Meta(gt=0)]
SliceT = TypeVar("SliceT", bound=ConfigSlice)
ValueT = TypeVar("ValueT")


@functools.cache
def keys_of(kind: type[ConfigSlice]) -> Mapping[str, Key]:
    """The keys of a table, by name, in the order of the written file."""
    kinds = get_type_hints(kind, include_extras=True)
    return {name: _make_key(name, kinds[name], default) for name, default in _field_defaults(kind)}


def _field_defaults(kind: type[ConfigSlice]) -> Iterator[tuple[str, Any]]:
    """The names of the fields, each with its default, or `NODEFAULT`."""
    for field in structs.fields(kind):
        made = field.default_factory is not NODEFAULT
        yield field.name, field.default_factory() if made else field.default


def _make_key(name: str, kind: Any, default: Any) -> Key:
    parts = [*_type_parts(kind)]
    tables = [part for part in parts if isinstance(part, type) and issubclass(part, ConfigSlice)]
    described = [part.description for part in parts if isinstance(part, Meta) and part.description]
    return Key(
        name=name,
        kind=kind,
        description=described[0] if described else "",
        required=default is NODEFAULT,
        default=None if default is NODEFAULT else default,
        table=tables[0] if tables else None,
    )


def _type_parts(kind: Any) -> Iterator[Any]:
    """The type, and those that it is composed of, with what annotates them."""
    yield kind
    for part in (*get_args(kind), *(kind.__metadata__ if get_origin(kind) is Annotated else ())):
        yield from _type_parts(part)


def read_toml(path: Path) -> dict[str, Any]:
    """The file's tables.

    Raises:
        ConfigError: the file is missing, unreadable or not TOML.
    """
    try:
        with open_named(path) as file:
            return parse_toml(file.read().decode("utf-8").removeprefix(BYTE_ORDER_MARK))
    except FileNotFoundError as exc:
        raise ConfigError(f"no configuration at {path}", hint="run `cra init` in the repository") from exc
    except OSError as exc:
        raise ConfigError(f"cannot read {path}: {exc.strerror}", hint=UNREADABLE) from exc
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{path} is not UTF-8: {exc}", hint="save it as UTF-8, as TOML requires") from exc
    except (
        ValueError,
        RecursionError,
    ) as exc:  # tomllib lets numbers of many digits and deep nesting through
        raise ConfigError(
            f"{path} is not valid TOML: {exc}", hint="fix the line that the message names"
        ) from exc


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of TOML.

    Raises:
        ValueError: it is not TOML, or has a number that nothing here can be set to: of more than 64 bits, or not finite.
        RecursionError: it is nested too deeply.
    """
    found = load_toml(text)
    _refuse_odd_numbers(found, "")
    return found


def load_toml(text: str) -> dict[str, Any]:
    """The tables of TOML. tomllib takes time by the square of the number of parts of each key; keys for which this would
    be long are refused.

    Raises:
        ValueError: it is not TOML, or its dotted keys have too many parts.
        RecursionError: it is nested too deeply.
    """
    if text.count(".") > FEW_DOTS:
        _refuse_long_keys(text)
    return tomllib.loads(text)


def _refuse_long_keys(text: str) -> None:
    work = parts = 0
    follows = False
    for token in TOML_TOKEN.finditer(text):
        if token.lastgroup == "dot":
            follows = True
        elif token.lastgroup != "blank":
            is_part = token.lastgroup == "part"
            parts = is_part * (parts + 1 if follows else 1)
            follows = False
            work += 2 * parts if parts >= LONG_KEY else 0
            if work > MAX_KEY_WORK:
                line = text.count("\n", 0, token.start()) + 1
                raise ValueError(f"too many parts in dotted keys (at line {line})")


def _refuse_odd_numbers(value: Any, key: str) -> None:
    if isinstance(value, dict):
        for name, inner in value.items():
            _refuse_odd_numbers(inner, f"{key}.{name}" if key else name)
    elif isinstance(value, list):
        for inner in value:
            _refuse_odd_numbers(inner, key)
    elif isinstance(value, int) and not -MAX_INTEGER <= value < MAX_INTEGER:
        raise ValueError(f"the number at {key} has more than 64 bits")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"the number at {key} is not finite")


def with_value(text: str, tables: Sequence[str], name: str, value: Any) -> str:
    """The TOML `text` with the key of the (nested) table set to the value, or without the key if that is None; all else stays
    byte for byte.
    A commented-out key (`# name = …`) is replaced in its place.

    Raises:
        ConfigError: the table is written in a form that cannot be changed in this way.
    """
    import tomlkit  # noqa: PLC0415 - most commands only read

    try:
        document: Any = tomlkit.parse(text)
        wanted = parse_toml(text)
        at, plain = document, wanted
        is_new = False
        for table in tables:
            if table not in at:
                at[table], is_new = tomlkit.table(), True
            at, plain = at[table], plain.setdefault(table, {})
        after: str | None
        if value is None:
            if name not in at:
                return text
            del at[name], plain[name]
            after = document.as_string()
        else:
            was_there = name in at
            plain[name] = value
            line = tomlkit.item(value).as_string()
            after = None if was_there else _over_comment(text, ".".join(tables), name, line)
            if after is None:
                at[name] = value
                if is_new:
                    at.add(tomlkit.nl())
                after = document.as_string().rstrip("\n") + "\n" if is_new else document.as_string()
        assert after is not None
        after.encode()
        found = parse_toml(after)
    except (tomlkit.exceptions.TOMLKitError, ValueError, TypeError, AttributeError) as exc:
        raise ConfigError(
            f"{'.'.join(tables)}.{name} cannot be changed: {exc}", hint="edit the file"
        ) from exc
    if found != wanted:
        raise ConfigError(
            f"[{'.'.join(tables)}] cannot be changed as it is written", hint="edit the file by hand"
        )
    return after


def _over_comment(text: str, table: str, name: str, value: str) -> str | None:
    """The text with the commented-out key of the table set to a value; None if there is no such comment."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    header = re.compile(rf"\s*\[\s*{re.escape(table)}\s*\]")
    own = re.compile(rf"#\s*{re.escape(name)}\s*=[^#\r\n]*")
    inside = False
    for place, line in enumerate(lines):
        if line.lstrip().startswith("["):
            inside = header.match(line) is not None
        elif inside and (match := own.match(line)):
            rest = line[match.end() :]
            entry = f"{name} = {value}"
            width = 43 if rest.startswith("#") else len(match[0])
            lines[place] = (
                f"{entry:<{width}}{' ' * rest.startswith('#')}{rest}" if rest.strip() else entry + rest
            )
            return "".join(lines)
    return None


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
        return _convert_value(dict(section), kind)
    except msgspec.ValidationError as exc:
        faults = [*_table_faults(section, kind)]
        missing = any(words == MISSING for _, words in faults)
        hint = (
            "add it to the file, or run `cra init` to have every required value written" if missing else WRONG
        )
        raise ConfigError(_explain_faults(faults, table, source), hint=hint) from exc


def check_slice(data: Mapping[str, Any], table: str, kind: type[ConfigSlice], *, source: str) -> None:
    """Validate the values of a table; required ones may be missing.

    Raises:
        ConfigError: a key is unknown, or has an invalid value.
    """
    section = data.get(table, {})
    if not isinstance(section, Mapping):
        raise ConfigError(f"{source}: [{table}] must be a table")
    try:
        _convert_value(dict(section), kind)
    except msgspec.ValidationError as exc:
        faults = [(key, words) for key, words in _table_faults(section, kind) if words != MISSING]
        if faults:
            raise ConfigError(_explain_faults(faults, table, source), hint=WRONG) from exc


def _convert_value(value: Any, kind: type[ValueT]) -> ValueT:
    return msgspec.convert(value, kind, dec_hook=_as_path)


def _as_path(kind: type, value: Any) -> Path:
    if kind is not Path or not isinstance(value, str):
        raise TypeError("Expected a path")
    return Path(value)


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
            raise ConfigError(f"{source}: unknown table [{name}]{_name_suggestion(name, names)}")


def _explain_faults(faults: Iterable[tuple[str, str]], table: str, source: str) -> str:
    return f"{source}: " + "; ".join(f"[{table}] {key}: {words}" for key, words in faults)


def _table_faults(
    section: Mapping[str, Any], kind: type[ConfigSlice], within: str = ""
) -> Iterator[tuple[str, str]]:
    """Each wrong key of a table, and what is wrong with it."""
    keys = keys_of(kind)
    for key in keys.values():
        value, name = section.get(key.name), f"{within}{key.name}"
        if key.name not in section:
            if key.required:
                yield name, MISSING
        elif key.table is not None and isinstance(value, Mapping):
            yield from _table_faults(value, key.table, f"{name}.")
        else:
            try:
                _convert_value(value, key.kind)
            except msgspec.ValidationError as exc:
                yield _locate_fault(name, str(exc), key.kind)
    for name in section:
        if name not in keys:
            yield f"{within}{name}", f"unknown key{_name_suggestion(name, keys)}"


def _locate_fault(key: str, fault: str, kind: Any) -> tuple[str, str]:
    """The key with the place of the fault in its value, and the fault in words."""
    words, _, place = fault.partition(" - at `$")
    if words.startswith("Invalid enum value"):
        words = words.replace("enum ", "")
        allowed = [
            repr(word) for part in _type_parts(kind) if get_origin(part) is Literal for word in get_args(part)
        ]
        words += f": write {', '.join(allowed[:-1])} or {allowed[-1]}"
    for theirs, ours in (("`object`", "a table"), ("`array`", "a list"), ("`", "")):
        words = words.replace(theirs, ours)
    return key + place.rstrip("`"), words[:1].lower() + words[1:]


def _name_suggestion(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, tuple(known), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
