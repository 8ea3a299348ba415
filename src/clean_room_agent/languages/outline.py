"""The outline of a test file from its syntax tree: test and suite calls, hooks, declarations, names used."""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct
from tree_sitter import Node

from clean_room_agent.languages.nodes import Nodes
from clean_room_agent.languages.parsed import text_of

MAX_DEPTH = 400
IDENTIFIERS = frozenset({"identifier", "type_identifier", "shorthand_property_identifier"})
PATTERNS = frozenset(
    {"object_pattern", "array_pattern", "pair_pattern", "rest_pattern", "pattern_list", "tuple_pattern"}
    | {"formal_parameters", "required_parameter"}
)
Kind = Literal["test", "suite", "hook"]


class Span(Struct, frozen=True, kw_only=True):
    """Whole lines, 1-based and inclusive."""

    start_line: int
    end_line: int

    def holds(self, other: "Span") -> bool:
        """Whether the lines of `other` are among these."""
        return self.start_line <= other.start_line and other.end_line <= self.end_line


class TestCall(Struct, frozen=True, kw_only=True):
    """A call that declares a test, a suite or a hook."""

    __test__ = False

    kind: Kind
    titles: tuple[tuple[str, ...], ...]
    """Titles of the enclosing suites and its own, each as the fixed pieces of its text, with any text between them."""
    span: Span
    scope: Span
    """The enclosing suite; the whole file if there is none."""


class DeclaredName(Struct, frozen=True, kw_only=True):
    """A name that a file, a suite or a class declares."""

    name: str
    span: Span
    scope: Span
    fixture: bool = False
    automatic: bool = False
    """Whether it runs for each test of its scope without being named, as an autouse fixture or a `setUp` does."""


class Outline(Struct, frozen=True, kw_only=True):
    """The outline of a test file, in the order of its lines."""

    calls: tuple[TestCall, ...] = ()
    declared: tuple[DeclaredName, ...] = ()
    names: tuple[tuple[int, str], ...] = ()
    """(line, name) of each identifier; attributes count only for `self` and `cls`."""

    def names_in(self, span: Span) -> frozenset[str]:
        """The names that the lines of `span` use."""
        first, behind = (
            bisect_left(self.names, (span.start_line,)),
            bisect_left(self.names, (span.end_line + 1,)),
        )
        return frozenset(name for _, name in self.names[first:behind])


class OutlinePlace(Struct, frozen=True):
    """The position of a node."""

    titles: tuple[tuple[str, ...], ...]
    """Titles of the enclosing suites."""
    scope: Span
    declares: bool
    """Whether its statements declare names of the scope."""
    opens: bool = False
    """Whether the next function is that of a suite."""


class Visit(Struct, frozen=True):
    """A node with its surroundings; asking tree-sitter for a parent searches from the root."""

    node: Node
    outer: tuple[Node, ...]
    """Its parent and grandparent, if they exist."""
    place: OutlinePlace
    depth: int

    def around(self, types: frozenset[str]) -> Node:
        """The widest of the node, its parent and its grandparent such that all up to it are of these types."""
        found = self.node
        for node in self.outer:
            if node.type not in types:
                break
            found = node
        return found


class Outliner:
    """Reads outlines in languages in which a test is a definition. What is inside of functions declares nothing."""

    visits_functions = False
    """Whether what is inside of functions is visited: for calls that declare tests, and the names used there."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self._declaring = nodes.definitions - nodes.naming - nodes.members

    def outline(self, root: Node, source: bytes) -> Outline:
        """The outline of a file, which may have syntax errors."""
        calls: list[TestCall] = []
        declared: list[DeclaredName] = []
        names: list[tuple[int, str]] = []
        whole = Span(start_line=1, end_line=root.end_point[0] + 1)
        waiting = [Visit(root, (), OutlinePlace((), whole, declares=True), 0)]
        while waiting:
            visit = waiting.pop()
            node, place = visit.node, visit.place
            if place.declares:
                declared.extend(self.declared(visit, source))
            call = None
            if self.visits_functions and node.type in IDENTIFIERS:
                names.append((node.start_point[0] + 1, text_of(source, node)))
            elif self.visits_functions and node.type in self.nodes.calls:
                call = self.test_call(visit, source)
                calls += [call] if call is not None else []
            if visit.depth < MAX_DEPTH and (place.declares or self.visits_functions):
                outer = (node, *visit.outer[:1])
                waiting.extend(
                    Visit(child, outer, self._child_place(node, child, place, call), visit.depth + 1)
                    for child in reversed(node.named_children)
                )
        names.extend(self.names(root, source))
        return Outline(calls=tuple(calls), declared=tuple(declared), names=tuple(sorted(names)))

    def test_call(self, visit: Visit, source: bytes) -> TestCall | None:
        """The test, suite or hook that a call declares."""
        return None

    def names(self, root: Node, source: bytes) -> Iterator[tuple[int, str]]:
        """(line, name) of each name that is used, if functions are not visited."""
        yield from ()

    def declared(self, visit: Visit, source: bytes) -> Iterator[DeclaredName]:
        """The names that a statement declares."""
        node, scope = visit.node, visit.place.scope
        if node.type in self._declaring:
            name = node.child_by_field_name("name")
            if name is not None:
                outer = visit.around(self.nodes.wrappers - self.nodes.declarations)
                yield self.definition(text_of(source, name), node, outer, scope, source)

    def definition(self, name: str, node: Node, outer: Node, scope: Span, source: bytes) -> DeclaredName:
        """What a definition declares; `outer` is what wraps it."""
        return DeclaredName(name=name, span=span_of(outer), scope=scope)

    def _child_place(
        self, node: Node, child: Node, place: OutlinePlace, call: TestCall | None
    ) -> OutlinePlace:
        """The place of a child: declarations count in a file, in a class, and in the function of a suite."""
        if call is not None:
            scope = call.span if call.kind == "suite" else place.scope
            return OutlinePlace(call.titles, scope, declares=False, opens=call.kind == "suite")
        nodes = self.nodes
        if child.type not in nodes.blocks:
            return place
        if node.type in nodes.classes:
            return OutlinePlace(place.titles, span_of(node), declares=True)
        if node.type in nodes.functions:
            return OutlinePlace(
                place.titles, place.scope, declares=place.opens and node.type in nodes.nameless
            )
        return place


def bound_names(node: Node | None, source: bytes) -> Iterator[str]:
    """The names that a pattern binds."""
    waiting = [] if node is None else [node]
    while waiting:
        part = waiting.pop()
        if part.type in {"identifier", "shorthand_property_identifier_pattern"}:
            yield text_of(source, part)
        elif part.type in PATTERNS:
            waiting.extend(reversed(part.named_children))


def span_of(node: Node) -> Span:
    """The lines of a node."""
    return Span(start_line=node.start_point[0] + 1, end_line=node.end_point[0] + (node.end_point[1] > 0))
