"""The outline of a test file from its syntax tree: test and suite calls, hooks, declarations, names used.

In Python a test is a definition; in JavaScript and TypeScript it is a call, with its title and its suites' titles:

    describe('cart', () => {          suite  ("cart",)
      beforeEach(() => { … });        hook   within that suite
      it.each([1, 2])('adds %d', …);  test   ("cart", "adds *")
    });
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from typing import Literal

from msgspec import Struct
from tree_sitter import Node, Query, QueryCursor

from clean_room_agent.syntax import grammar_of, language, tree_of

MAX_DEPTH = 400
CALLEE = re.compile(
    r"(?:[xf]?(?P<test>it|test|specify)|[xf]?(?P<suite>describe|context|suite))(?:[A-Z_]\w*)?"
    r"|(?P<hook>before(?:Each|All)?|setup)"
)
"""The first name of the callee; with a suffix, it is a project's own wrapper (`itAsync`)."""
STEPS = frozenset({"test", "it", "step"})
"""Methods of a test's argument that start a subtest (`t.test`)."""
PLACEHOLDER = re.compile(r"%[a-zA-Z#%$]|\$[A-Za-z_][\w.]*|\$\{[^}]*\}")
ESCAPE = re.compile(r"\\(?:u\{?[0-9a-fA-F]+\}?|x[0-9a-fA-F]{2}|.)", re.DOTALL)
ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
FUNCTIONS = frozenset({"arrow_function", "function_expression", "function"})
BODIES = frozenset({"statement_block", "block"})
IDENTIFIERS = frozenset({"identifier", "type_identifier", "shorthand_property_identifier"})
PATTERNS = frozenset(
    {
        "object_pattern", "array_pattern", "pair_pattern", "rest_pattern", "formal_parameters", "required_parameter",
        "pattern_list", "tuple_pattern",
    }
)  # fmt: skip
EACH = re.compile(r"\.(?:forEach|map)\Z")
DECLARATIONS = frozenset(
    {
        "function_declaration", "generator_function_declaration", "class_declaration", "abstract_class_declaration",
        "interface_declaration", "type_alias_declaration", "enum_declaration", "function_definition", "class_definition",
    }
)  # fmt: skip
FIXTURE = re.compile(rb"\bfixture\b")
AUTOUSE = re.compile(rb"\bautouse\s*=\s*True\b")
FIXTURE_NAME = re.compile(rb"\bname\s*=\s*['\"](\w+)['\"]")
USED_FIXTURES = re.compile(r"['\"](\w+)['\"]")
PYTHON_NAMES = """
(identifier) @name
(attribute attribute: (identifier) @not_used)
(keyword_argument name: (identifier) @not_used)
"""
"""A query, as visiting each node takes six times as long; without predicates, which look at a node's text from the file's
beginning.
"""
OWN_ATTRIBUTE = re.compile(rb"(?<![\w.\x80-\xff])(?:self|cls)\s*\.\s*(\w+)")
PYTHON_HOOKS = frozenset(
    {
        "setUp", "setUpClass", "asyncSetUp", "setup_method", "setup_class",
        "setup_module", "setup_function", "setUpModule",
    }
)  # fmt: skip

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


class Declared(Struct, frozen=True, kw_only=True):
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
    declared: tuple[Declared, ...] = ()
    names: tuple[tuple[int, str], ...] = ()
    """(line, name) of each identifier; attributes count only for `self` and `cls`."""

    def names_in(self, span: Span) -> frozenset[str]:
        """The names that the lines of `span` use."""
        first, behind = (
            bisect_left(self.names, (span.start_line,)),
            bisect_left(self.names, (span.end_line + 1,)),
        )
        return frozenset(name for _, name in self.names[first:behind])


def outline_of(source: bytes, path: str) -> Outline | None:
    """The outline of a file, which may have syntax errors; None if it cannot be parsed."""
    tree = tree_of(source, path)
    if tree is None:
        return None
    is_python = grammar_of(path) == "python"
    calls, declared, names = _walk(tree.root_node, source, is_python=is_python)
    if is_python:
        names = _python_names(tree.root_node, source)
    return Outline(calls=tuple(calls), declared=tuple(declared), names=tuple(sorted(names)))


class _Place(Struct, frozen=True):
    """The position of a node."""

    titles: tuple[tuple[str, ...], ...]
    """Titles of the enclosing suites."""
    scope: Span
    declares: bool
    """Whether its statements declare names of the scope."""
    opens: bool = False
    """Whether the next function is that of a suite."""


class _Visit(Struct, frozen=True):
    """A node with its surroundings; asking tree-sitter for a parent searches from the root."""

    node: Node
    outer: tuple[Node, ...]
    """Its parent and grandparent, if they exist."""
    place: _Place
    depth: int

    def around(self, *types: str) -> Node:
        """The widest of the node, its parent and its grandparent such that all up to it are of these types."""
        found = self.node
        for node in self.outer:
            if node.type not in types:
                break
            found = node
        return found


def _walk(
    root: Node, source: bytes, *, is_python: bool
) -> tuple[list[TestCall], list[Declared], list[tuple[int, str]]]:
    """Calls, declarations and used names. In Python, only what is outside of functions is visited: it is there that
    declarations count.
    """
    calls: list[TestCall] = []
    declared: list[Declared] = []
    names: list[tuple[int, str]] = []
    whole = Span(start_line=1, end_line=root.end_point[0] + 1)
    waiting = [_Visit(root, (), _Place((), whole, True), 0)]
    while waiting:
        visit = waiting.pop()
        node, place = visit.node, visit.place
        if place.declares:
            declared.extend(_declared(visit, source))
        call = None
        if not is_python:
            if node.type in IDENTIFIERS:
                names.append((node.start_point[0] + 1, _text(node, source)))
            elif node.type == "call_expression":
                call = _test_call(visit, source)
                calls += [call] if call is not None else []
        if visit.depth < MAX_DEPTH and (place.declares or not is_python):
            outer = (node, *visit.outer[:1])
            waiting.extend(
                _Visit(child, outer, _inside(node, child, place, call), visit.depth + 1)
                for child in reversed(node.named_children)
            )
    return calls, declared, names


def _inside(node: Node, child: Node, place: _Place, call: TestCall | None) -> _Place:
    """The place of a child: declarations count in a file, in a class of Python, and in the function of a suite."""
    if call is not None:
        scope = call.span if call.kind == "suite" else place.scope
        return _Place(call.titles, scope, declares=False, opens=call.kind == "suite")
    if child.type not in BODIES:
        return place
    if node.type == "class_definition":
        return _Place(place.titles, _span(node), declares=True)
    if node.type in FUNCTIONS or node.type in DECLARATIONS or node.type == "method_definition":
        return _Place(place.titles, place.scope, declares=place.opens and node.type in FUNCTIONS)
    return place


def _test_call(visit: _Visit, source: bytes) -> TestCall | None:
    callee = visit.node.child_by_field_name("function")
    arguments = visit.node.child_by_field_name("arguments")
    if callee is None or arguments is None or arguments.type != "arguments":
        return None
    kind, titles, scope = _kind(callee, source), visit.place.titles, visit.place.scope
    span = _span(visit.around("expression_statement"))
    given = arguments.named_children
    runs = any(argument.type in FUNCTIONS for argument in given)
    if kind == "hook":
        return TestCall(kind=kind, titles=titles, span=span, scope=scope) if runs else None
    if kind is None or not given or (not runs and len(given) < 2) or given[0].type in {"array", "object"}:
        return None
    return TestCall(kind=kind, titles=(*titles, _title(given[0], source)), span=span, scope=scope)


def _kind(callee: Node, source: bytes) -> Kind | None:
    """The kind of call, by the first name of the callee, before `.only`, `.each(…)` and the like; or by its last, for
    `t.test`.
    """
    last = callee.child_by_field_name("property") if callee.type == "member_expression" else None
    first: Node | None = callee
    while first is not None and first.type in {
        "member_expression",
        "call_expression",
        "parenthesized_expression",
    }:
        first = first.child_by_field_name("object") or first.child_by_field_name("function")
    name = _text(first, source) if first is not None and first.type == "identifier" else ""
    if match := CALLEE.fullmatch(name):
        if match["hook"]:
            return "hook"
        return "test" if match["test"] else "suite"
    return "test" if last is not None and name and _text(last, source) in STEPS else None


def _title(node: Node, source: bytes) -> tuple[str, ...]:
    """The fixed pieces of a title: one if it is a plain string, two empty ones if nothing is known."""
    if node.type in {"string", "template_string"}:
        return tuple(PLACEHOLDER.split(_unescaped(_text(node, source)[1:-1])))
    if node.type == "binary_expression":
        sides = [node.child_by_field_name(side) for side in ("left", "right")]
        left, right = (_title(side, source) if side is not None else ("", "") for side in sides)
        return (*left[:-1], left[-1] + right[0], *right[1:])
    return ("", "")


def _unescaped(text: str) -> str:
    return ESCAPE.sub(
        lambda match: ESCAPED.get(match[0][1], match[0][1:] if len(match[0]) == 2 else "?"), text
    )


def _declared(visit: _Visit, source: bytes) -> Iterator[Declared]:
    """The names that a statement declares."""
    node, scope = visit.node, visit.place.scope
    if node.type in DECLARATIONS:
        name = node.child_by_field_name("name")
        if name is not None:
            outer = visit.around("decorated_definition", "export_statement")
            yield _definition(_text(name, source), node, outer, scope, source)
    elif node.type == "variable_declarator" and not _is_required(node.child_by_field_name("value"), source):
        span = _span(visit.around("lexical_declaration", "variable_declaration", "export_statement"))
        for bound in _bound(node.child_by_field_name("name"), source):
            yield Declared(name=bound, span=span, scope=scope)
    elif node.type in {"for_in_statement", "call_expression"}:
        yield from _loop_names(node, source)
    elif node.type == "assignment" and visit.outer and visit.outer[0].type == "expression_statement":
        for bound in _bound(node.child_by_field_name("left"), source):
            yield Declared(name=bound, span=_span(node), scope=scope)


def _is_required(value: Node | None, source: bytes) -> bool:
    """Whether a value is a required module, whose names are declared elsewhere."""
    return value is not None and source.startswith(b"require(", value.start_byte)


def _loop_names(node: Node, source: bytes) -> Iterator[Declared]:
    """What a loop over cases, `for (const one of cases)` or `cases.forEach((one) => …)`, gives the tests within it; its
    lines are those of the loop's header.
    """
    head, body = node.child_by_field_name("left"), node.child_by_field_name("body")
    if node.type == "call_expression":
        callee, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if callee is None or arguments is None or not EACH.search(_text(callee, source)[-20:]):
            return
        function = next((given for given in arguments.named_children if given.type in FUNCTIONS), None)
        if function is None:
            return
        head = function.child_by_field_name("parameters") or function.child_by_field_name("parameter")
        body = function.child_by_field_name("body")
    if head is not None and body is not None:
        lines = Span(start_line=node.start_point[0] + 1, end_line=body.start_point[0] + 1)
        for name in _bound(head, source):
            yield Declared(name=name, span=lines, scope=_span(node))


def _definition(name: str, node: Node, outer: Node, scope: Span, source: bytes) -> Declared:
    decorators = b""
    if outer is not node:
        decorators = source[outer.start_byte : node.start_byte]
    fixture = FIXTURE.search(decorators) is not None
    named = FIXTURE_NAME.search(decorators) if fixture else None
    return Declared(
        name=named[1].decode() if named else name,
        span=_span(outer),
        scope=scope,
        fixture=fixture,
        automatic=name in PYTHON_HOOKS or (fixture and AUTOUSE.search(decorators) is not None),
    )


def _bound(node: Node | None, source: bytes) -> Iterator[str]:
    """The names that a pattern binds."""
    waiting = [] if node is None else [node]
    while waiting:
        part = waiting.pop()
        if part.type in {"identifier", "shorthand_property_identifier_pattern"}:
            yield _text(part, source)
        elif part.type in PATTERNS:
            waiting.extend(reversed(part.named_children))


@cache
def _query(source: str) -> Query:
    return Query(language("python"), source)


def _python_names(root: Node, source: bytes) -> list[tuple[int, str]]:
    """(line, name) of each name that is used, and of each fixture that a call of `usefixtures` names.

    An attribute only counts for `self` and `cls`, and the name of an argument does not count.
    """
    cursor = QueryCursor(_query(PYTHON_NAMES))
    cursor.set_max_start_depth(MAX_DEPTH)
    found = cursor.captures(root)
    own = {match.start(1) for match in OWN_ATTRIBUTE.finditer(source)}
    left_out = {node.start_byte for node in found.get("not_used", ())} - own
    names = [
        (node.start_point[0] + 1, _text(node, source))
        for node in found.get("name", ())
        if node.start_byte not in left_out
    ]
    if b"usefixtures" in source:
        names += _fixtures_named(root, source)
    return names


def _fixtures_named(root: Node, source: bytes) -> Iterator[tuple[int, str]]:
    for call in QueryCursor(_query("(call) @call")).captures(root).get("call", ()):
        callee, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
        if callee is not None and arguments is not None and _text(callee, source).endswith("usefixtures"):
            for name in USED_FIXTURES.findall(_text(arguments, source)):
                yield call.start_point[0] + 1, name


def _span(node: Node) -> Span:
    return Span(start_line=node.start_point[0] + 1, end_line=node.end_point[0] + (node.end_point[1] > 0))


def _text(node: Node, source: bytes) -> str:
    # A node's own text would be asked of the parser's reader, from the file's beginning.
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")
