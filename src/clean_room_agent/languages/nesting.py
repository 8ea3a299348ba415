"""Nests definitions: parents, qualified names, and which definitions count as symbols."""

import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from clean_room_agent.languages.parsed import Definition

HOLDERS = frozenset({"class", "interface", "variable"})
METHOD_HOLDERS = frozenset({"class", "interface"})
LOCAL_HOLDERS = frozenset({"function", "method"})


class Nested(NamedTuple):
    """The symbols of one file, each after the one that encloses it.

    A symbol's place is its index in these lists, which all have the same length.

        class A:                      place 0: A    class   parent -1
            def m(self): ...          place 1: A.m  method  parent 0
        x = 1                         place 2: x    variable, parent -1
    """

    definitions: list[Definition]
    parents: list[int]
    """The place of the symbol around it; -1 at module level."""
    names: list[str]
    """Qualified."""
    kinds: list[str]


def nest(definitions: Iterable[Definition]) -> Nested:
    """Turn definitions into symbols, leaving out those that do not count, in the order of the file."""
    kept: list[Definition] = []
    parents: list[int] = []
    names: list[str] = []
    kinds: list[str] = []
    seen: set[tuple[int, str]] = set()
    open_: list[int] = []
    for one in sorted(definitions, key=lambda one: (one.start, -one.end)):
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
        if not _counts_as_definition(one, kind, parent, parent_kind, seen):
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


def _counts_as_definition(
    one: Definition, kind: str, parent: int, parent_kind: str, seen: set[tuple[int, str]]
) -> bool:
    if not one.name or (one.needs_holder and parent_kind not in HOLDERS):
        return False
    if kind not in {"variable", "type_alias"} or one.holds:
        return True  # a namespace may be declared more than once
    return parent_kind not in LOCAL_HOLDERS and (kind == "type_alias" or (parent, one.name) not in seen)


def innermost(starts: Iterable[int], nested: Nested) -> Iterator[int]:
    """Yield the place of the innermost symbol around each byte, -1 for none; the bytes must ascend."""
    definitions = nested.definitions
    open_: list[int] = []
    following, count = 0, len(definitions)
    place, boundary = -1, -1
    for start in starts:
        if start >= boundary:
            while following < count and definitions[following].start <= start:
                while open_ and definitions[open_[-1]].end <= definitions[following].start:
                    open_.pop()
                open_.append(following)
                following += 1
            while open_ and definitions[open_[-1]].end <= start:
                open_.pop()
            place = open_[-1] if open_ else -1
            boundary = definitions[following].start if following < count else sys.maxsize
            if place >= 0:
                boundary = min(boundary, definitions[place].end)
        yield place
