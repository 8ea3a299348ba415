"""Finds the innermost symbol and scope at each byte of a file."""

import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

from tree_sitter import Node

from clean_room_agent.languages.nesting import Nested

MODULE_SCOPE = 0
FUNCTIONS = frozenset({"function", "method"})


class Regions:
    """The symbols and scopes of one file.

    A scope is a function, class, interface, type or namespace, or the body of one; other blocks belong to the function
    around them. Scopes are numbered in the order of the file; `MODULE_SCOPE` is the file itself.
    """

    def __init__(
        self, nested: Nested, scopes: Sequence[Node], fits: Callable[[str, str], bool] | None = None
    ) -> None:
        """`fits`: whether a scope of this type of node may be a symbol of this kind; None if the scopes are bodies, each that of the
        innermost symbol around it.
        """
        self._fits = fits
        self.nodes: list[Node | None] = [None, *sorted(scopes, key=lambda one: one.start_byte)]
        self.parents = [-1] * len(self.nodes)
        """Scope -> the scope around it."""
        self.around = [MODULE_SCOPE] * len(nested.definitions)
        """Symbol -> the scope in which it is defined."""
        self.own = [-1] * len(nested.definitions)
        """Symbol -> the scope that it is, if it is one."""
        self.symbols = [-1] * len(self.nodes)
        """Scope -> the symbol that it is, or -1."""
        self._starts = [0]
        self._places = [-1]
        self._scopes = [MODULE_SCOPE]
        self._fill_regions(nested)

    def at(self, byte: int) -> tuple[int, int]:
        """The innermost symbol (-1: none) and innermost scope at a byte."""
        found = bisect_right(self._starts, byte) - 1
        return self._places[found], self._scopes[found]

    def pieces(self) -> Iterator[tuple[int, int, int]]:
        """Yield (symbol, scope, end) of consecutive pieces of the file with the same innermost symbol and scope."""
        yield from zip(self._places, self._scopes, [*self._starts[1:], sys.maxsize], strict=True)

    def with_symbols(self) -> frozenset[int]:
        """The scopes that contain symbols, at any depth."""
        found = {MODULE_SCOPE}
        for scope in set(self.around):
            around = scope
            while around not in found:
                found.add(around)
                around = self.parents[around]
        return frozenset(found)

    def _fill_regions(self, nested: Nested) -> None:
        # A function and its symbol begin and end together, and the symbol is around it; a body with a single statement
        # begins and ends with that, and is around its symbol.
        is_inner = 1 if self._fits is not None else -1
        spans = [(one.start, -one.end, 0, place) for place, one in enumerate(nested.definitions)]
        spans.extend(
            (node.start_byte, -node.end_byte, is_inner, number)
            for number, node in enumerate(self.nodes)
            if node is not None
        )
        spans.sort()
        open_: list[tuple[int, int, int]] = []
        place, scope = -1, MODULE_SCOPE
        for start, minus_end, is_scope, number in spans:
            while open_ and open_[-1][0] <= start:
                end, place, scope = open_.pop()
                self._begin_region(end, place, scope)
            open_.append((-minus_end, place, scope))
            if is_scope:
                self.parents[number] = scope
                self._link_scope(nested, place, scope, number)
                scope = number
            else:
                self.around[number] = scope
                place = number
            self._begin_region(start, place, scope)
        while open_:
            end, place, scope = open_.pop()
            self._begin_region(end, place, scope)

    def _link_scope(self, nested: Nested, place: int, around: int, scope: int) -> None:
        node = self.nodes[scope]
        if place < 0 or node is None or self.own[place] >= 0 or self.around[place] != around:
            return
        kind = nested.kinds[place]
        if kind != "variable" and (self._fits is None or self._fits(node.type, kind)):
            self.own[place], self.symbols[scope] = scope, place

    def _begin_region(self, start: int, place: int, scope: int) -> None:
        if self._starts[-1] == start:
            self._places[-1], self._scopes[-1] = place, scope
        else:
            self._starts.append(start)
            self._places.append(place)
            self._scopes.append(scope)
