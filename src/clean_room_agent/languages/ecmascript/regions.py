"""Finds the innermost symbol and scope at each byte of a JavaScript or TypeScript file."""

import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from tree_sitter import Node

from clean_room_agent.languages.nesting import Nested

MODULE_SCOPE = 0
CLASSES = frozenset({"class_declaration", "abstract_class_declaration", "class"})
CALLED = frozenset(
    {
        "function_declaration",
        "generator_function_declaration",
        "function_expression",
        "generator_function",
        "arrow_function",
        "method_definition",
        "function_signature",
        "method_signature",
        "abstract_method_signature",
    }
)
FUNCTIONS = frozenset({"function", "method"})


class Regions:
    """The symbols and scopes of one file.

    A scope is a function, class, interface, type or namespace; blocks belong to the function around them. Scopes are
    numbered in the order of the file; `MODULE_SCOPE` is the file itself.
    """

    def __init__(self, nested: Nested, scopes: Sequence[Node]) -> None:
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
        self._fill(nested)

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

    def _fill(self, nested: Nested) -> None:
        spans = [(one.start, -one.end, 0, place) for place, one in enumerate(nested.definitions)]
        spans.extend(
            (node.start_byte, -node.end_byte, 1, number)
            for number, node in enumerate(self.nodes)
            if node is not None
        )
        spans.sort()
        open_: list[tuple[int, int, int]] = []
        place, scope = -1, MODULE_SCOPE
        for start, minus_end, is_scope, number in spans:
            while open_ and open_[-1][0] <= start:
                end, place, scope = open_.pop()
                self._begin(end, place, scope)
            open_.append((-minus_end, place, scope))
            if is_scope:
                self.parents[number] = scope
                self._own(nested, place, scope, number)
                scope = number
            else:
                self.around[number] = scope
                place = number
            self._begin(start, place, scope)
        while open_:
            end, place, scope = open_.pop()
            self._begin(end, place, scope)

    def _own(self, nested: Nested, place: int, around: int, scope: int) -> None:
        node = self.nodes[scope]
        if place < 0 or node is None or self.own[place] >= 0 or self.around[place] != around:
            return
        kind = nested.kinds[place]
        fits = node.type in CALLED if kind in FUNCTIONS else node.type in CLASSES or kind != "class"
        if fits and kind != "variable":
            self.own[place], self.symbols[scope] = scope, place

    def _begin(self, start: int, place: int, scope: int) -> None:
        if self._starts[-1] == start:
            self._places[-1], self._scopes[-1] = place, scope
        else:
            self._starts.append(start)
            self._places.append(place)
            self._scopes.append(scope)


def base_nodes(node: Node) -> Iterator[Node]:
    """What a class or interface extends and implements, in order."""
    for child in node.children:
        if child.type in {"class_heritage", "extends_type_clause"}:
            clauses = [one for one in child.named_children if one.type.endswith("_clause")] or [child]
            for clause in clauses:
                yield from (one for one in clause.named_children if one.type != "type_arguments")
