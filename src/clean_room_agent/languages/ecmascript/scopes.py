"""Scopes of a JavaScript or TypeScript file: what a name, `this` or `super` means in each."""

import re
from collections.abc import Container, Sequence
from typing import NamedTuple

from tree_sitter import Node

from clean_room_agent.languages.ecmascript.expressions import agreed, of_type, of_value
from clean_room_agent.languages.ecmascript.regions import CLASSES, MODULE_SCOPE, Regions
from clean_room_agent.languages.interface import MAX_LENGTH
from clean_room_agent.languages.nesting import Nested

HEAD = re.compile(r"[^.()\[\]:@!?%;]+")
UNSAFE = re.compile(r"[\s;|]")
NOT_FUNCTIONS = frozenset({"arrow_function", "function_type", "call_signature", "function_signature"})
"""Scopes in which `this` is what it is around them."""
STATIC = re.compile(r"(?:@\S+\s+)*(?:(?:public|private|protected|override)\s+)*static\b")
MAX_DEPTH = 50


class Bound(NamedTuple):
    """What a name is bound to: a value's node or a type's node, and the steps from there."""

    node: Node | None = None
    """None: something unknown, or `text`."""
    field: str = ""
    """Of the node, what is meant; "" for the node itself."""
    is_type: bool = False
    steps: str = ""
    scope: int = MODULE_SCOPE
    """In which the node stands."""
    text: str = ""
    """An expression that is known at once."""


UNKNOWN = Bound()


class Scopes:
    """The names in the scopes of one file. Bind all names, call `finish`, then ask."""

    def __init__(
        self, nested: Nested, regions: Regions, text: str, keys: Sequence[str], constructors: Container[str]
    ) -> None:
        self._nested = nested
        self._regions = regions
        self._text = text
        self._keys = keys
        self._constructors = constructors
        """Names of functions that are used as classes."""
        self._tables: list[dict[str, list[Bound]]] = [{} for _ in regions.nodes]
        self._known: dict[tuple[int, str], str | None] = {}
        self._this: dict[int, str] = {}
        self._depth = 0

    def bind(self, scope: int, name: str, bound: Bound | None) -> None:
        """Add a binding of the name in the scope; None declares it without a value."""
        known = self._tables[scope].setdefault(name, [])
        if bound is not None:
            known.append(bound)

    def rebind(self, scope: int, name: str, bound: Bound) -> None:
        """Add an assignment to the name as used in the scope; a module's own variables are left alone."""
        while scope > MODULE_SCOPE:
            known = self._tables[scope].get(name)
            if known is not None:
                known.append(bound)
                return
            scope = self._regions.parents[scope]

    def finish(self) -> None:
        """Declare that everything is bound; from now on, names can be looked up."""
        for scope, table in enumerate(self._tables):
            for name, bound in table.items():
                # Names bound several times can form a cycle. They are resolved here, in a fixed order, so that the
                # answer does not depend on which is asked for first.
                if len(bound) > 1:
                    self.meaning(name, scope)

    def meaning(self, name: str, scope: int) -> str | None:
        """The expression for the name as used in the scope; "" if it is local but unknown, None if it is not local."""
        key = scope, name
        if key in self._known:
            return self._known[key]
        around = scope
        while around >= 0 and name not in self._tables[around]:
            around = self._regions.parents[around]
        if around < 0:
            self._known[key] = None
        elif around != scope:
            self._known[key] = self.meaning(name, around)
        else:
            self._known[key] = ""
            self._known[key] = self.agreed(self._tables[scope][name])
        return self._known[key]

    def is_value(self, name: str, scope: int) -> bool:
        """Whether the name, as used in the scope, is a parameter or a variable of a function."""
        while scope >= 0:
            bound = self._tables[scope].get(name)
            if bound is not None:
                return not any(one.text for one in bound)
            scope = self._regions.parents[scope]
        return False

    def agreed(self, bound: Sequence[Bound]) -> str:
        """The one expression that all of these share, followed by `?` if some are unknown; else ""."""
        typed = [one for one in bound if one.is_type]
        return agreed([self.expression(one) for one in typed or bound])

    def expression(self, bound: Bound) -> str:
        """The expression for a binding, in terms of module-level names."""
        node = bound.node
        if node is not None and bound.field:
            node = node.child_by_field_name(bound.field)
        if node is None:
            return bound.text
        read = of_type if bound.is_type else of_value
        found = read(node, self._text)
        return self.canonical(found + bound.steps, bound.scope) if found else ""

    def canonical(self, expression: str, scope: int) -> str:
        """Rewrite the expression in terms of module-level names; "" if unknown."""
        if expression[0] in "=#~":
            return expression
        head = HEAD.match(expression)
        if head is None or self._depth > MAX_DEPTH:
            return ""
        self._depth += 1
        meaning = self.head(head[0], scope)
        self._depth -= 1
        if meaning is None:
            return expression if len(expression) <= MAX_LENGTH else ""
        if not meaning or len(meaning) + len(expression) > MAX_LENGTH:
            return ""
        return meaning + expression[head.end() :]

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
