"""The names that a JavaScript or TypeScript file uses and does not declare, by its syntax tree.

Scopes are not told apart: a name that is declared anywhere in the file counts as declared, so that what is reported is
certain. A global that only the surroundings know is not: of names that the file never had, only those of modules count that
look like a variable or function of its own and are no global of browsers, Node or test runners.
"""

import re

from tree_sitter import Node, Tree

from clean_room_agent.languages.parsed import named_nodes

NAMED_TEXT = """
    variable_declarator function_declaration generator_function_declaration function_expression generator_function
    function_signature class_declaration abstract_class_declaration class enum_declaration internal_module module
    index_signature
"""
BOUND_BY_FIELD = {
    **dict.fromkeys(NAMED_TEXT.split(), ("name",)),
    "required_parameter": ("pattern",),
    "optional_parameter": ("pattern",),
    "assignment_pattern": ("left",),
    "object_assignment_pattern": ("left",),
    "pair_pattern": ("value",),
    "catch_clause": ("parameter",),
    "for_in_statement": ("left",),
    "arrow_function": ("parameter",),
    "assignment_expression": ("left",),
    "import_specifier": ("name", "alias"),
}
"""Nodes that declare what stands in these fields."""
BINDERS = frozenset(
    {"formal_parameters", "rest_pattern", "array_pattern"}
    | {"import_alias", "import_clause", "namespace_import", "import_require_clause"}
)
"""Nodes that declare each identifier directly below them."""
UNUSED = frozenset(
    {"type_predicate", "asserts", "nested_identifier", "jsx_namespace_name", "namespace_export"}
)
JSX_TAGS = frozenset({"jsx_opening_element", "jsx_closing_element", "jsx_self_closing_element"})
MODULE_MARKS = frozenset({"import_statement", "export_statement"})
OWN_NAME = re.compile(r"[a-z][A-Za-z0-9]*\Z")
GLOBALS_TEXT = """
    arguments undefined globalThis console process require module exports global window document navigator self top parent
    location history screen frames performance crypto fetch alert confirm prompt atob btoa queueMicrotask structuredClone
    setTimeout clearTimeout setInterval clearInterval setImmediate clearImmediate requestAnimationFrame
    cancelAnimationFrame requestIdleCallback cancelIdleCallback getComputedStyle matchMedia addEventListener
    removeEventListener dispatchEvent postMessage localStorage sessionStorage indexedDB caches event name status length
    scroll scrollTo scrollBy focus blur open close stop print find origin opener closed customElements visualViewport
    isNaN isFinite parseInt parseFloat encodeURI encodeURIComponent decodeURI decodeURIComponent escape unescape eval
    describe it test expect beforeEach afterEach beforeAll afterAll before after suite setup teardown context specify
    jest vi vitest assert should chai sinon mocha cy jasmine spyOn fail pending xit xdescribe fit fdescribe
    suiteSetup suiteTeardown run bench onTestFinished onTestFailed expectTypeOf assertType importScripts registerProcessor chrome browser jquery
    google gapi gtag dataLayer angular async await of get set let static yield type declare namespace abstract as from
    satisfies keyof infer is readonly unique override accessor never unknown any string number boolean object symbol bigint
"""
GLOBALS = frozenset(GLOBALS_TEXT.split())


def undefined_names(old: Tree | None, new: Tree | None) -> dict[str, int]:
    """The names that a file with the tree `new` uses and does not declare, each with its first line (1-based), of which the tree `old` declared
    what is missing, or had never heard. Empty if one of them has a syntax error.
    """
    if old is None or new is None or old.root_node.has_error or new.root_node.has_error:
        return {}
    had, has = _Names(old.root_node), _Names(new.root_node)
    return {
        name: line
        for name, line in has.used.items()
        if name not in has.declared
        and name not in has.tested
        and (
            name in had.declared
            or (has.is_module and name not in had.used and OWN_NAME.match(name) and name not in GLOBALS)
        )
    }


class _Names:
    """The identifiers of a file, by what they do."""

    def __init__(self, root: Node) -> None:
        self.declared: set[str] = set()
        self.used: dict[str, int] = {}
        self.tested: set[str] = set()
        """What stands below a `typeof`, which a missing name survives."""
        self.is_module = False
        for node in named_nodes(root):
            self._note_node(node)

    def _note_node(self, node: Node) -> None:
        parent = node.parent
        if node.type in MODULE_MARKS:
            self.is_module = True
        elif node.type == "shorthand_property_identifier_pattern" or (
            node.type == "type_identifier" and parent is not None and _is_bound(node, parent)
        ):
            self.declared.add(_node_text(node))
        elif node.type == "shorthand_property_identifier":
            self.used.setdefault(_node_text(node), node.start_point.row + 1)
        elif node.type == "identifier" and parent is not None:
            self._note_identifier(node, parent)

    def _note_identifier(self, node: Node, parent: Node) -> None:
        name = _node_text(node)
        if _is_bound(node, parent):
            self.declared.add(name)
        elif parent.type == "unary_expression" and _node_text(parent).startswith("typeof"):
            self.tested.add(name)
        elif not _names_something_else(node, parent):
            self.is_module = self.is_module or (name == "require" and parent.type == "call_expression")
            self.used.setdefault(name, node.start_point.row + 1)


def _is_bound(node: Node, parent: Node) -> bool:
    if parent.type in BINDERS:
        return True
    fields = BOUND_BY_FIELD.get(parent.type, ())
    return any(parent.child_by_field_name(field) == node for field in fields)


def _names_something_else(node: Node, parent: Node) -> bool:
    """Whether the identifier is no variable: an element of HTML, a name that another module has."""
    if parent.type in JSX_TAGS:
        return _node_text(node)[:1].islower()
    if parent.type == "export_specifier":
        clause = parent.parent
        statement = clause.parent if clause is not None else None
        elsewhere = statement is not None and statement.child_by_field_name("source") is not None
        return elsewhere or parent.child_by_field_name("alias") == node
    return parent.type in UNUSED


def _node_text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")
