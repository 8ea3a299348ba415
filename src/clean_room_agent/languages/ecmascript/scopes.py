"""Scopes of a JavaScript or TypeScript file: what `this` and `super` mean in each."""

import re
from collections.abc import Container, Iterator, Sequence

from tree_sitter import Node

from clean_room_agent.languages.ecmascript import nodes
from clean_room_agent.languages.ecmascript.expressions import of_type, of_value
from clean_room_agent.languages.nesting import Nested
from clean_room_agent.languages.regions import FUNCTIONS, Regions
from clean_room_agent.languages.scopes import Scopes

CLASSES = nodes.CLASSES | {"class"}
CALLED = nodes.NODES.functions | nodes.NODES.overloads | {"abstract_method_signature"}
UNSAFE = re.compile(r"[\s;|]")
NOT_FUNCTIONS = frozenset({"arrow_function", "function_type", "call_signature", "function_signature"})
"""Scopes in which `this` is what it is around them."""
STATIC = re.compile(r"(?:@\S+\s+)*(?:(?:public|private|protected|override)\s+)*static\b")


def is_scope_of(node_type: str, kind: str) -> bool:
    """Whether a scope of this type of node may be a symbol of this kind."""
    return node_type in CALLED if kind in FUNCTIONS else node_type in CLASSES or kind != "class"


class ScriptScopes(Scopes):
    """The scopes of a file; a block belongs to the function around it."""

    def __init__(
        self, nested: Nested, regions: Regions, text: str, keys: Sequence[str], constructors: Container[str]
    ) -> None:
        """`constructors`: names of functions that are used as classes."""
        super().__init__(regions, text, regions.parents)
        self._nested = nested
        self._keys = keys
        self._constructors = constructors
        self._this: dict[int, str] = {}

    def value(self, node: Node) -> str:
        """See `Scopes.value`."""
        return of_value(node, self._text)

    def type(self, node: Node) -> str:
        """See `Scopes.type`."""
        return of_type(node, self._text)

    def head(self, name: str, scope: int) -> str | None:
        """Like `meaning`, but also for `this` and `super`."""
        if name == "this":
            return self.this(scope)
        if name == "super":
            own = self.this(scope)
            return f"{own.rstrip('@')}!" if own else ""
        return self.meaning(name, scope)

    def this(self, scope: int) -> str:
        """The expression for `this` in the scope; "" if unknown."""
        known = self._this.get(scope)
        if known is None:
            known = self._this[scope] = self._find_this(scope)
        return known

    def symbol(self, key: str) -> str:
        """The expression for the symbol with this key."""
        return "" if UNSAFE.search(key) else f"={key};"

    def _find_this(self, scope: int) -> str:
        regions = self._regions
        node = regions.nodes[scope]
        while node is not None and node.type in NOT_FUNCTIONS:
            scope = regions.parents[scope]
            node = regions.nodes[scope]
        if node is None:
            return ""
        place = regions.symbols[scope]
        if node.type in CLASSES:
            own = self.symbol(self._keys[place]) if place >= 0 else ""
            return own and f"{own}@"
        around = regions.nodes[regions.parents[scope]]
        if around is not None and around.type in CLASSES:
            instance = self.this(regions.parents[scope])
            return instance.rstrip("@") if STATIC.match(self._text, node.start_byte) else instance
        return self._this_of_function(place) if place >= 0 else ""

    def _this_of_function(self, place: int) -> str:
        """For a function outside classes: the object it is a method of, or the class it constructs."""
        nested = self._nested
        name, owner = self._keys[place], nested.definitions[place].owner
        parent = nested.parents[place]
        if name in self._constructors:
            return f"{self.symbol(name)}@"
        if owner:
            holder = name.rpartition(".")[0]
            return self.symbol(holder) + ("@" if holder in self._constructors else "")
        is_object = parent >= 0 and nested.kinds[parent] == "variable" and nested.kinds[place] == "method"
        return self.symbol(self._keys[parent]) if is_object else ""


def base_nodes(node: Node) -> Iterator[Node]:
    """What a class or interface extends and implements, in order."""
    for child in node.children:
        if child.type in {"class_heritage", "extends_type_clause"}:
            clauses = [one for one in child.named_children if one.type.endswith("_clause")] or [child]
            for clause in clauses:
                yield from (one for one in clause.named_children if one.type != "type_arguments")
