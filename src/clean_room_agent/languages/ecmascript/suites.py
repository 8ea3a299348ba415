"""The outline of a file of tests in JavaScript or TypeScript.

A test is a call, with its title and its suites' titles:

    describe('cart', () => {          suite  ("cart",)
      beforeEach(() => { … });        hook   within that suite
      it.each([1, 2])('adds %d', …);  test   ("cart", "adds *")
    });
"""

import re
from collections.abc import Iterator

from tree_sitter import Node

from clean_room_agent.languages.outline import (
    DeclaredName,
    Kind,
    Outliner,
    Span,
    TestCall,
    Visit,
    bound_names,
    span_of,
)
from clean_room_agent.languages.parsed import text_of

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
EACH = re.compile(r"\.(?:forEach|map)\Z")


class ScriptOutliner(Outliner):
    """Reads outlines of JavaScript and TypeScript files."""

    visits_functions = True

    def test_call(self, visit: Visit, source: bytes) -> TestCall | None:
        """Calls of the usual names, with a function or a title."""
        callee = visit.node.child_by_field_name("function")
        arguments = visit.node.child_by_field_name("arguments")
        if callee is None or arguments is None or arguments.type != "arguments":
            return None
        kind, titles, scope = _call_kind(callee, source), visit.place.titles, visit.place.scope
        span = span_of(visit.around(frozenset({"expression_statement"})))
        given = arguments.named_children
        runs = any(argument.type in self.nodes.nameless for argument in given)
        if kind == "hook":
            return TestCall(kind=kind, titles=titles, span=span, scope=scope) if runs else None
        if kind is None or not given or (not runs and len(given) < 2) or given[0].type in {"array", "object"}:
            return None
        return TestCall(kind=kind, titles=(*titles, _title_pieces(given[0], source)), span=span, scope=scope)

    def declared(self, visit: Visit, source: bytes) -> Iterator[DeclaredName]:
        """Definitions, variables that hold no module, and what loops over cases give."""
        yield from super().declared(visit, source)
        node, scope = visit.node, visit.place.scope
        if node.type == "variable_declarator" and not _is_required(node.child_by_field_name("value"), source):
            span = span_of(visit.around(self.nodes.wrappers))
            for bound in bound_names(node.child_by_field_name("name"), source):
                yield DeclaredName(name=bound, span=span, scope=scope)
        elif node.type in {"for_in_statement", "call_expression"}:
            yield from self._loop_names(node, source)

    def _loop_names(self, node: Node, source: bytes) -> Iterator[DeclaredName]:
        """What a loop over cases, `for (const one of cases)` or `cases.forEach((one) => …)`, gives the tests within it; its
        lines are those of the loop's header.
        """
        head, body = node.child_by_field_name("left"), node.child_by_field_name("body")
        if node.type == "call_expression":
            callee, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
            if callee is None or arguments is None or not EACH.search(text_of(source, callee)[-20:]):
                return
            function = next(
                (given for given in arguments.named_children if given.type in self.nodes.nameless), None
            )
            if function is None:
                return
            head = function.child_by_field_name("parameters") or function.child_by_field_name("parameter")
            body = function.child_by_field_name("body")
        if head is not None and body is not None:
            lines = Span(start_line=node.start_point[0] + 1, end_line=body.start_point[0] + 1)
            for name in bound_names(head, source):
                yield DeclaredName(name=name, span=lines, scope=span_of(node))


def _call_kind(callee: Node, source: bytes) -> Kind | None:
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
    name = text_of(source, first) if first is not None and first.type == "identifier" else ""
    if match := CALLEE.fullmatch(name):
        if match["hook"]:
            return "hook"
        return "test" if match["test"] else "suite"
    return "test" if last is not None and name and text_of(source, last) in STEPS else None


def _title_pieces(node: Node, source: bytes) -> tuple[str, ...]:
    """The fixed pieces of a title: one if it is a plain string, two empty ones if nothing is known."""
    if node.type in {"string", "template_string"}:
        return tuple(PLACEHOLDER.split(_unescape_string(text_of(source, node)[1:-1])))
    if node.type == "binary_expression":
        sides = [node.child_by_field_name(side) for side in ("left", "right")]
        left, right = (_title_pieces(side, source) if side is not None else ("", "") for side in sides)
        return (*left[:-1], left[-1] + right[0], *right[1:])
    return ("", "")


def _unescape_string(text: str) -> str:
    return ESCAPE.sub(
        lambda match: ESCAPED.get(match[0][1], match[0][1:] if len(match[0]) == 2 else "?"), text
    )


def _is_required(value: Node | None, source: bytes) -> bool:
    """Whether a value is a required module, whose names are declared elsewhere."""
    return value is not None and source.startswith(b"require(", value.start_byte)
