"""Scopes of a Python file: locals, parameters, nested definitions and local imports, with their types."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from tree_sitter import Node

from clean_room_agent.languages.interface import MAX_LENGTH
from clean_room_agent.languages.nesting import Nested
from clean_room_agent.languages.parsed import RawImport
from clean_room_agent.languages.python.expressions import CHAIN, NEUTRAL, expression_at

FUNCTIONS = frozenset({"function", "method"})
MANY = 30
"""Names of one scope from which on their types are inferred in the order of the text, so that one that builds on many
others finds them done."""
MAX_DEPTH = 50
EMPTY: frozenset[str] = frozenset()


Written = str | tuple[int, Node]
"""An expression; or where it begins in the text, and the assignment whose right side it is: most are never asked for."""
Bound = tuple[Written, int]
"""An expression and the place in whose scope it stands."""
NOTHING: dict[str, list[Bound]] = {}


class Scopes:
    """The scopes of one file. Bind all names, call `finish`, then ask."""

    def __init__(self, nested: Nested, text: str) -> None:
        self._nested = nested
        self._text = text
        self._bound: dict[int, dict[str, list[Bound]]] = defaultdict(dict)
        """Place -> name -> each expression that it is bound to, with the place in whose scope that is evaluated."""
        self._not_local: dict[int, set[str]] = defaultdict(set)
        self._symbols: dict[int, dict[str, int]] = defaultdict(dict)
        self._special: dict[int, set[str]] = {}
        """Place -> the names of symbols and imports in it."""
        for place, parent in enumerate(nested.parents):
            if parent >= 0:
                name = nested.definitions[place].name
                self._symbols[parent][name] = place
                self._special.setdefault(parent, set()).add(name)
        self._known: dict[tuple[int, str], str | None] = {}
        self._chains: dict[int, tuple[int, ...]] = {}
        self._depth = 0

    def bind(self, place: int, name: str, expression: Written = "", scope: int | None = None) -> None:
        """Add a binding of `name` inside the symbol at `place`; "" is an unknown value."""
        bound = (expression, place if scope is None else scope)
        table = self._bound[place]
        if name in table:
            table[name].append(bound)
        else:
            table[name] = [bound]

    def bind_import(self, place: int, name: str, expression: str) -> None:
        """Bind a name that is imported inside the symbol at `place`."""
        self.bind(place, name, expression)
        self._special.setdefault(place, set()).add(name)

    def declare_outer(self, place: int, names: Iterable[str]) -> None:
        """Handle `global` and `nonlocal`: the names are not the symbol's own, even though it assigns them."""
        self._not_local[place].update(names)

    def finish(self) -> None:
        """Declare that everything is bound; from now on, names can be looked up."""
        for place, names in self._not_local.items():
            for name in names:
                self._bound[place].pop(name, None)
        for place, table in self._bound.items():
            is_large = len(table) > MANY
            for name, bound in table.items():
                # Names bound several times can form a cycle. They are resolved here, in a fixed order, so that the
                # answer does not depend on which is asked for first.
                if is_large or len(bound) > 1:
                    self._own(place, name)

    def visible(self, place: int) -> tuple[Mapping[str, object] | AbstractSet[str], AbstractSet[str]]:
        """The names that are local at `place`, and those among them that are symbols or imports."""
        outer = self._nested.parents[place]
        if outer < 0 or (self._nested.kinds[place] == "method" and self._nested.parents[outer] < 0):
            return self._bound.get(place, EMPTY), self._special.get(place, EMPTY)
        chain = self.around(place)
        if len(chain) == 1:
            return self._bound.get(place, EMPTY), self._special.get(place, EMPTY)
        plain: set[str] = set()
        special: set[str] = set()
        for scope in reversed(chain):
            own = self._special.get(scope, EMPTY)
            special = (special - self._bound.get(scope, {}).keys()) | own
            plain.update(self._bound.get(scope, EMPTY))
        return plain, special

    def class_of(self, place: int) -> int:
        """The place of the class whose method contains `place`; -1 if there is none."""
        while place >= 0:
            if self._nested.kinds[place] == "method":
                return self._nested.parents[place]
            place = self._nested.parents[place]
        return -1

    def around(self, place: int) -> tuple[int, ...]:
        """The places whose names are visible at `place`, nearest first.

        Names of a class are visible in its body and in its variables, but not in its methods.
        """
        known = self._chains.get(place)
        if known is not None:
            return known
        kinds, parents = self._nested.kinds, self._nested.parents
        chain = [place] if place >= 0 else []
        outer = parents[place] if place >= 0 else -1
        if place >= 0 and outer >= 0 and kinds[place] not in FUNCTIONS and kinds[place] != "class":
            chain.append(outer)
            outer = parents[outer]
        while outer >= 0:
            if kinds[outer] in FUNCTIONS:
                chain.append(outer)
            outer = parents[outer]
        found = tuple(chain)
        self._chains[place] = found
        return found

    def meaning(self, name: str, place: int, *, in_class: bool = False) -> str | None:
        """The expression for `name` as used at `place`; "" if it is local but unknown, None if it is not local.

        With `in_class`, a method's names are also looked up in its class, as for its decorators.
        """
        bound = self._bound.get(place, NOTHING).get(name)
        if bound is not None and len(bound) == 1 and not in_class:
            expression = bound[0][0]
            if not expression or (expression[0] == "=" and place not in self._symbols):
                return str(expression)
        chain = self.around(place)
        if in_class and place >= 0:
            outer = self._nested.parents[place]
            chain = (outer, *self.around(outer)[1:]) if outer >= 0 else ()
        for scope in chain:
            found = self._own(scope, name)
            if found is not None:
                return found
        return None

    def canonical(self, expression: str, place: int) -> str:
        """Rewrite the expression in terms of module-level names; "" if unknown."""
        head = CHAIN.match(expression)
        if head is None:
            return expression
        name = head[0].partition(".")[0]
        if name == "super":
            own = self.class_of(place)
            return f"={self._nested.names[own]};!{expression[5:]}" if own >= 0 else ""
        if self._depth > MAX_DEPTH:
            return ""
        self._depth += 1
        meaning = self.meaning(name, place)
        self._depth -= 1
        if meaning is None:
            return expression
        if not meaning or len(meaning) + len(expression) > MAX_LENGTH:
            return ""
        return meaning + expression[len(name) :]

    def _own(self, scope: int, name: str) -> str | None:
        key = (scope, name)
        if key in self._known:
            return self._known[key]
        self._known[key] = ""
        found = self._find(scope, name)
        self._known[key] = found
        return found

    def _find(self, scope: int, name: str) -> str | None:
        bound = self._bound.get(scope, {}).get(name, ())
        symbol = self._symbols.get(scope, {}).get(name, -1)
        if symbol >= 0 and self._nested.kinds[scope] not in FUNCTIONS:
            return f"={self._nested.names[symbol]};"
        if symbol >= 0:
            return "" if bound else f"={self._nested.names[symbol]};"
        if not bound:
            return None
        return self.agreed(bound)

    def agreed(self, bound: Sequence[Bound]) -> str:
        """The one expression that all of these share, followed by `?` if some are unknown; else ""."""
        if len(bound) == 1:
            written, place = bound[0]
            expression = written if isinstance(written, str) else self._read(written)
            return "" if not expression or expression in NEUTRAL else self.canonical(expression, place)
        found: dict[str, None] = {}
        unknown = False
        for written, place in bound:
            expression = written if isinstance(written, str) else self._read(written)
            if expression in NEUTRAL:
                continue
            known = self.canonical(expression, place) if expression else ""
            if known:
                found[known] = None
            else:
                unknown = True
        annotated = [one for one in found if one.endswith(":")]
        if len(annotated) == 1:
            return annotated[0]
        if len(found) != 1:
            return ""
        (only,) = found
        return f"{only}?" if unknown and not only.endswith("?") else only

    def _read(self, written: tuple[int, Node]) -> str:
        start, node = written
        return expression_at(self._text, start, node.end_byte, node)


def bindings(one: RawImport) -> list[tuple[str, str, str]]:
    """(name here, name there or "" for the module itself, module as written) for each name the import binds."""
    if one.names:
        aliases = one.aliases or one.names
        return [(alias, name, one.target) for alias, name in zip(aliases, one.names, strict=True)]
    if one.aliases:
        return [(one.aliases[0], "", one.target)]
    top = one.target.partition(".")[0]
    return [(top, "", top)]
