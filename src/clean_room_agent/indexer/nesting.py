"""Nests definitions: parents, qualified names, and which definitions count as symbols."""

from collections.abc import Iterable
from typing import NamedTuple

from clean_room_agent.indexer.languages.parsed import Definition

HOLDERS = frozenset({"class", "interface", "variable"})
METHOD_HOLDERS = frozenset({"class", "interface"})
LOCAL_HOLDERS = frozenset({"function", "method"})


class Nested(NamedTuple):
    """The definitions of one file that are its symbols, the enclosing before the enclosed.

    A symbol's place is its position in these lists, which are all of one length.
    """

    definitions: list[Definition]
    parents: list[int]
    """The place of the symbol around it; -1 at module level."""
    names: list[str]
    """Qualified."""
    kinds: list[str]


def nest(definitions: Iterable[Definition]) -> Nested:
    """The definitions that count, in the order of the file."""
    kept: list[Definition] = []
    parents: list[int] = []
    names: list[str] = []
    kinds: list[str] = []
    seen: set[tuple[int, str]] = set()
    open_: list[int] = []
    for one in sorted(definitions, key=_position):
        start = one.start
        while open_ and kept[open_[-1]].end <= start:
            open_.pop()
        parent, name, kind, parent_kind = -1, one.name, one.kind, ""
        if one.owner:
            name = f"{one.owner}.{name}"
        if open_:
            parent = open_[-1]
            parent_kind = kinds[parent]
            name = f"{names[parent]}.{name}"
            if kind == "function" and parent_kind in METHOD_HOLDERS:
                kind = "method"
        if not _counts(one, kind, parent, parent_kind, seen):
            continue
        if kind == "variable":
            seen.add((parent, one.name))
        if one.holds:
            open_.append(len(kept))
        kept.append(one)
        parents.append(parent)
        names.append(name)
        kinds.append(kind)
    return Nested(kept, parents, names, kinds)


def _position(one: Definition) -> tuple[int, int]:
    return one.start, -one.end


def _counts(one: Definition, kind: str, parent: int, parent_kind: str, seen: set[tuple[int, str]]) -> bool:
    if not one.name or (one.needs_holder and parent_kind not in HOLDERS):
        return False
    if kind not in {"variable", "type_alias"} or one.holds:
        return True  # a namespace may be opened again
    return parent_kind not in LOCAL_HOLDERS and (kind == "type_alias" or (parent, one.name) not in seen)
