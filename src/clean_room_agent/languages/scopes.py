"""What a name means in each scope of a file: what it is bound to there, as an expression over module-level names.

Languages say how their values and types are written as expressions, and what else a name can mean. Expressions are short
texts, to be evaluated later in the file where they were written:

    expression := head step*
    head       := name                   looked up at module level
                | "=" qualified ";"      a symbol of the same file
                | "#" module ";" name ";"  an import inside a function; no name: the module itself
                | "~"                    the object that a method was called on
    step       := ".name" | "()" called | "[]" subscripted | ":" an instance of it | "@" the same, as `self`
                | "!" its bases, as `super()`
                | "%" inferred from return statements | "?" some of the possible values are unknown

The last two lower the confidence. An empty text is an unknown value. For example:

    cart: Cart                    Cart:
    cart = shop.open("x").cart    shop.open().cart
    self.items[0]  in class Cart  =Cart;@.items[]
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple

from tree_sitter import Node

from clean_room_agent.languages.interface import MAX_LENGTH
from clean_room_agent.languages.nodes import NONE
from clean_room_agent.languages.regions import MODULE_SCOPE, Regions

HEAD = re.compile(r"[^.()\[\]:@!?%;]+")
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


class Scopes(ABC):
    """The names in the scopes of one file. Bind all names, call `finish`, then ask."""

    neutral: ClassVar[frozenset[str]] = NONE
    """Values that say nothing of what else a name may be, as they are written."""

    def __init__(self, regions: Regions, text: str, outer: Sequence[int]) -> None:
        """`outer`: scope -> the next one whose names it sees; -1 for none."""
        self._regions = regions
        self._text = text
        self._outer = outer
        self._tables: list[dict[str, list[Bound]]] = [{} for _ in regions.nodes]
        self._known: dict[tuple[int, str], str | None] = {}
        self._depth = 0

    @abstractmethod
    def value(self, node: Node) -> str:
        """The expression for a value; names in it are as written."""

    @abstractmethod
    def type(self, node: Node) -> str:
        """The expression for a value of the type."""

    def head(self, name: str, scope: int) -> str | None:
        """Like `meaning`, but also for words such as `super`."""
        return self.meaning(name, scope)

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
            scope = self._outer[scope]

    def unbind(self, scope: int, name: str) -> None:
        """Forget what the name is bound to in the scope: it is one of a scope around it."""
        self._tables[scope].pop(name, None)

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
        around = self._binding_scope(name, scope)
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
        holder = self._binding_scope(name, scope)
        return holder >= 0 and not any(one.text for one in self._tables[holder][name])

    def _binding_scope(self, name: str, scope: int) -> int:
        """The scope in which the name is bound, as seen from a scope; -1 if there is none."""
        while scope >= 0 and name not in self._tables[scope]:
            scope = self._outer[scope]
        return scope

    def agreed(self, bound: Sequence[Bound]) -> str:
        """The one expression that all of these share, followed by `?` if some are unknown; else "". Types that are stated
        and known count before values.
        """
        typed = [one for one in bound if one.is_type and self.expression(one)]
        said = [one for one in typed or bound if len(bound) == 1 or not self._is_neutral(one)]
        return agreed([self.expression(one) for one in said])

    def _is_neutral(self, bound: Bound) -> bool:
        node = bound_node(bound)
        return node is not None and self._text[node.start_byte : node.end_byte] in self.neutral

    def expression(self, bound: Bound) -> str:
        """The expression for a binding, in terms of module-level names."""
        node = bound_node(bound)
        if node is None:
            return bound.text
        found = self.type(node) if bound.is_type else self.value(node)
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


def agreed(found: Iterable[str]) -> str:
    """The one expression that all of these share, followed by `?` if some are unknown; else ""."""
    distinct = dict.fromkeys(found)
    known = [one for one in distinct if one]
    if len(known) != 1:
        return ""
    return known[0] if len(distinct) == 1 or known[0].endswith("?") else f"{known[0]}?"


def bound_node(bound: Bound) -> Node | None:
    """What is meant of its node; None if there is none."""
    return bound.node.child_by_field_name(bound.field) if bound.node and bound.field else bound.node
