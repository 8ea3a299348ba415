"""A file's interface: definitions, imports and exports that other files can see, as JSON."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from clean_room_agent.json_values import to_json

MAX_LENGTH = 120
"""Of an expression, in characters: a longer one is unknown."""
STAR = "*"
"""The key of what `from module import *` takes, and of what `export * from` passes on."""
EXPORT = "^"
"""Before the name of an export, in the place of a name."""
EXPORTS = f"{EXPORT}{STAR}"
"""The key of which exports there are."""
DEFAULT = "default"
"""The name of JavaScript's default export."""
WHOLE = "="
"""The export that is the module itself: what `module.exports` and TypeScript's `export =` are set to."""


class FileNames(NamedTuple):
    """The two JSON texts that are stored for a file."""

    interface: str
    """By `write_interface`."""
    uses: str
    """By `write_uses`."""


Written = tuple[int, str] | tuple[int, str, str | Sequence[str]] | tuple[int, str, str | Sequence[str], str]
"""A definition that other files can refer to, without its empty end:

place: of the symbol; -1 for an attribute that only `self.x = ...` makes;
kind: c: class (also interfaces and types of objects), e: enum, f: function, p: property, v: variable or attribute, a: alias,
    which is what its expression comes to;
types: a class's bases; else the expression for what it holds or returns, or "";
occurrence: which of how many definitions of one name it is; "" for the only one.
"""


class Interface(Struct, frozen=True):
    """A file's definitions, module-level imports, star imports and exports, parsed."""

    definitions: Mapping[str, Written]
    imports: Mapping[str, Sequence[tuple[str, str]]]
    """Name -> each (module as written, name there or "") that may bind it."""
    stars: Sequence[str]
    exported: frozenset[str] | None
    """Python's `__all__` where it is a literal."""
    exports: Mapping[str, tuple[str, str]] | None = None
    """JavaScript's and TypeScript's exports: name -> (module as written, or "" for the file itself; name there, or ""
    for the module). None in Python, where others see every name."""


def write_interface(
    definitions: Mapping[str, Written],
    imports: Mapping[str, Sequence[tuple[str, str]]],
    stars: Sequence[str],
    exported: Sequence[str] | Mapping[str, tuple[str, str]] | None,
) -> str:
    """Serialise an interface for `parse_interface`."""
    return to_json([definitions, imports, stars, exported])


def write_uses(
    inner: Mapping[str, Written],
    imports: Sequence[tuple[str, Sequence[str], str]],
    uses: Sequence[tuple[int, str]],
) -> str:
    """Serialise what a file uses: definitions that only it can refer to; of imports that give values of names, (module as written,
    names taken from there, kind); (place of a symbol, the tokens of the names it uses, separated by spaces), as `languages.uses` says.
    """
    return to_json([inner, imports, uses])


def parse_interface(text: str) -> Interface:
    """Parse what `write_interface` wrote."""
    definitions, imports, stars, exported = json.loads(text)
    if isinstance(exported, dict):
        return Interface(definitions, imports, stars, None, exported)
    return Interface(definitions, imports, stars, None if exported is None else frozenset(exported))


def changed_names(before: str | None, after: str | None) -> frozenset[str]:
    """The names that mean something else to other files after the change (None: there is no such file).

    Moving a symbol within the file does not count; that a different one of several with the same name is meant does.
    """
    if before == after:
        return frozenset()
    old, new = _interface_meanings(before), _interface_meanings(after)
    return frozenset(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))


def _interface_meanings(text: str | None) -> dict[str, Any]:
    """Key -> what it means, ignoring places."""
    if text is None:
        return {}
    definitions, imports, stars, exported = json.loads(text)
    meanings: dict[str, Any] = {
        name: (entry[0] < 0, entry[1:], imports.get(name)) for name, entry in definitions.items()
    }
    meanings.update({name: (False, [], one) for name, one in imports.items() if name not in meanings})
    if isinstance(exported, dict):
        meanings.update({f"{EXPORT}{name}": one for name, one in exported.items()})
        meanings[EXPORTS] = sorted(exported)
        exported = None
    meanings[STAR] = (stars, exported)
    return meanings
