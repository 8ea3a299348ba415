"""Stubs: functions of a text that have still to be written.

A stub is a function or method whose body, apart from its docstring and comments, is one statement that says that it is
not implemented: `raise NotImplementedError` in Python, a `throw` of "not implemented" in JavaScript and TypeScript.
"""

import re
from collections.abc import Iterator

from msgspec import Struct
from tree_sitter import Node

from clean_room_agent.languages.nodes import Nodes
from clean_room_agent.syntax import is_bare_string, node_text, nodes_of, tree_of

NOT_IMPLEMENTED = re.compile(r"raise NotImplementedError\b|(?i:throw\b.*not[\s_-]*implemented)", re.DOTALL)
ABSTRACT = re.compile(r"@(?:\w+\.)*(?:overload|abstract\w*)\b")
"""Decorators of functions without a body."""
PROTOCOL = re.compile(r"\bProtocol\b")


class _Function(Struct, frozen=True, kw_only=True):
    """A function or method of a file or class, however it is declared."""

    symbol: str
    node: Node
    bodiless: bool
    """Whether it needs no body: an overload, an abstract method, a member of a protocol."""


def stub_names(path: str, text: str) -> tuple[str, ...]:
    """Qualified names (`Class.method`) of the stubs, in order of place, without abstract methods, which are not to be
    implemented. Empty if the file cannot be parsed.
    """
    tree, nodes = tree_of(text.encode("utf-8", "replace"), path), nodes_of(path)
    found = [] if tree is None else _functions(tree.root_node, nodes)
    return tuple(dict.fromkeys(one.symbol for one in found if not one.bodiless and _is_stub(one.node, nodes)))


def scaffold_faults(path: str, text: str) -> tuple[str, ...]:
    """What is wrong with the text of a new file as a scaffold, in words: it cannot be parsed, or has a function that is
    written already.
    """
    tree, nodes = tree_of(text.encode("utf-8", "replace"), path), nodes_of(path)
    if tree is None or tree.root_node.has_error:
        return (f"{path} does not parse",)
    return tuple(
        f"{path}, line {one.node.start_point.row + 1}: the body of {one.symbol} is no stub"
        for one in _functions(tree.root_node, nodes)
        if not (_is_stub(one.node, nodes) or (one.bodiless and _is_empty(one.node)))
    )


def _functions(root: Node, nodes: Nodes) -> Iterator[_Function]:
    """The functions of a file and of its classes, in order of place; not those inside of a function."""
    waiting = [(root, "", False)]
    while waiting:
        node, holder, bodiless = waiting.pop()
        if node.type in nodes.functions:
            if name := _name(node, nodes):
                yield _Function(symbol=f"{holder}.{name}".removeprefix("."), node=node, bodiless=bodiless)
            continue
        if node.type in nodes.classes:
            holder = f"{holder}.{_name(node, nodes)}".removeprefix(".")
            bases = node.child_by_field_name("superclasses")
            bodiless = bases is not None and PROTOCOL.search(node_text(bases)) is not None
        elif node.type in nodes.wrappers:
            bodiless = bodiless or any(ABSTRACT.match(node_text(child)) for child in node.named_children)
        waiting.extend((child, holder, bodiless) for child in reversed(node.named_children))


def _name(node: Node, nodes: Nodes) -> str:
    """The name of a class or function, by what it is assigned to if it is; "" if it has none, as a callback."""
    parent = node.parent
    if parent is not None and parent.type in nodes.naming | {"assignment_expression"}:
        node = parent
    fields = (node.child_by_field_name(field) for field in ("name", "property", "left"))
    name = next((field for field in fields if field is not None), None)
    return "" if name is None else node_text(name)


def _statements(function: Node) -> list[Node] | None:
    """The statements of its body without docstring and comments; None if the body is an expression, or missing."""
    body = function.child_by_field_name("body")
    if body is None or body.type not in {"block", "statement_block"}:
        return None
    statements = [child for child in body.named_children if child.type != "comment"]
    return [one for number, one in enumerate(statements) if number or not is_bare_string(one)]


def _is_stub(function: Node, nodes: Nodes) -> bool:
    statements = _statements(function) or ()
    return (
        len(statements) == 1
        and statements[0].type in nodes.stubs
        and NOT_IMPLEMENTED.match(node_text(statements[0])) is not None
    )


def _is_empty(function: Node) -> bool:
    """Whether it contains nothing but `...` or `pass`."""
    return all(node_text(one) in {"...", "pass"} for one in _statements(function) or ())
