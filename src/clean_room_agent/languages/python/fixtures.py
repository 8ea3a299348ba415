"""The outline of a file of Python tests: fixtures, hooks, and what its tests use."""

import re
from collections.abc import Iterator
from functools import cache

import tree_sitter_python
from tree_sitter import Language, Node, Query, QueryCursor

from clean_room_agent.languages.outline import (
    MAX_DEPTH,
    DeclaredName,
    Outliner,
    Span,
    Visit,
    bound_names,
    span_of,
)
from clean_room_agent.languages.parsed import text_of

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
    {"setUp", "setUpClass", "setUpModule", "asyncSetUp"}
    | {"setup_method", "setup_class", "setup_module", "setup_function"}
)


class PythonOutliner(Outliner):
    """Reads outlines of Python files."""

    def names(self, root: Node, source: bytes) -> Iterator[tuple[int, str]]:
        """Names that are used, and fixtures that a call of `usefixtures` names.

        An attribute only counts for `self` and `cls`, and the name of an argument does not count.
        """
        cursor = QueryCursor(_compile_query(PYTHON_NAMES))
        cursor.set_max_start_depth(MAX_DEPTH)
        found = cursor.captures(root)
        own = {match.start(1) for match in OWN_ATTRIBUTE.finditer(source)}
        left_out = {node.start_byte for node in found.get("not_used", ())} - own
        for node in found.get("name", ()):
            if node.start_byte not in left_out:
                yield node.start_point[0] + 1, text_of(source, node)
        if b"usefixtures" in source:
            yield from _fixtures_named(root, source)

    def declared(self, visit: Visit, source: bytes) -> Iterator[DeclaredName]:
        """Definitions, and what is assigned."""
        yield from super().declared(visit, source)
        node = visit.node
        if node.type == "assignment" and visit.outer and visit.outer[0].type == "expression_statement":
            for bound in bound_names(node.child_by_field_name("left"), source):
                yield DeclaredName(name=bound, span=span_of(node), scope=visit.place.scope)

    def definition(self, name: str, node: Node, outer: Node, scope: Span, source: bytes) -> DeclaredName:
        """Fixtures are known by what decorates them."""
        decorators = b""
        if outer is not node:
            decorators = source[outer.start_byte : node.start_byte]
        fixture = FIXTURE.search(decorators) is not None
        named = FIXTURE_NAME.search(decorators) if fixture else None
        return DeclaredName(
            name=named[1].decode() if named else name,
            span=span_of(outer),
            scope=scope,
            fixture=fixture,
            automatic=name in PYTHON_HOOKS or (fixture and AUTOUSE.search(decorators) is not None),
        )


@cache
def _compile_query(source: str) -> Query:
    return Query(Language(tree_sitter_python.language()), source)


def _fixtures_named(root: Node, source: bytes) -> Iterator[tuple[int, str]]:
    for call in QueryCursor(_compile_query("(call) @call")).captures(root).get("call", ()):
        callee, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
        if callee is not None and arguments is not None and text_of(source, callee).endswith("usefixtures"):
            for name in USED_FIXTURES.findall(text_of(source, arguments)):
                yield call.start_point[0] + 1, name
