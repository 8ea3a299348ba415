"""Stubs and scaffolds, by their syntax: which functions of a text are stubs, and whether it adds only declarations.

A stub is a function or method whose body, apart from its docstring and comments, is one statement that says that it is
not implemented: `raise NotImplementedError` in Python, a `throw` of "not implemented" in JavaScript and TypeScript.
"""

import re
from collections.abc import Iterator

from msgspec import Struct
from tree_sitter import Node

from clean_room_agent.languages.nodes import NONE
from clean_room_agent.languages.registry import LANGUAGES
from clean_room_agent.syntax import is_bare_string, node_text, tree_of

IMPORTS = NONE.union(*(one.nodes.imports for one in LANGUAGES))
GUARDS = NONE.union(*(one.nodes.guards for one in LANGUAGES))
WRAPPERS = NONE.union(*(one.nodes.wrappers - one.nodes.declarations for one in LANGUAGES))
RAISES = re.compile(r"raise NotImplementedError\b")
THROWS = re.compile(r"throw\b.*not[\s_-]*implemented", re.IGNORECASE | re.DOTALL)
ABSTRACT = re.compile(r"@(?:\w+\.)*(?:overload|abstract\w*)\b")
"""Decorators of functions without a body."""
PROTOCOL = re.compile(r"\bProtocol\b")
FUNCTIONS = NONE.union(*(one.nodes.functions for one in LANGUAGES))
CLASSES = NONE.union(*(one.nodes.classes for one in LANGUAGES))
ASSIGNED = frozenset({"variable_declarator", "public_field_definition", "field_definition"})
ASSIGNMENTS = frozenset({"assignment", "assignment_expression"})
DECLARED = frozenset(
    {
        "comment", "pass_statement", "type_alias_statement", "future_import_statement", "empty_statement",
        "interface_declaration", "type_alias_declaration", "enum_declaration", "ambient_declaration",
        "function_signature", "method_signature", "abstract_method_signature", "property_signature", "index_signature",
        "import_alias", "decorator",
    }
) | IMPORTS  # fmt: skip
"""Statements and members without code that runs later."""
MAX_QUOTED = 80


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
    root = _root(path, text)
    if root is None:
        return ()
    found = (one for one in _functions(root, "") if not one.bodiless and _is_stub(one.node))
    return tuple(dict.fromkeys(one.symbol for one in found))


def scaffold_faults(path: str, text: str) -> tuple[str, ...]:
    """What is wrong with the text of a new file as a scaffold, in words: it cannot be parsed, or holds something other than
    declarations with stub bodies.
    """
    root = _root(path, text)
    if root is None or root.has_error:
        return (f"{path} does not parse",)
    return tuple(f"{path}, {fault}" for one in root.named_children for fault in _statement_faults(one))


def _root(path: str, text: str) -> Node | None:
    tree = tree_of(text.encode("utf-8", "replace"), path)
    return None if tree is None else tree.root_node


def _inner(statement: Node) -> Node:
    """The statement without the decorators, the `export` and the like around it."""
    node = statement
    while node.type in WRAPPERS:
        held = [child for child in node.named_children if child.type not in {"decorator", "comment"}]
        definition = node.child_by_field_name("definition") or node.child_by_field_name("declaration")
        value = node.child_by_field_name("value")
        inner = definition or value or (held[-1] if node.type == "decorated_definition" and held else None)
        if inner is None:
            return node
        node = inner
    return node


def _name(node: Node) -> str:
    field = "property" if node.type == "field_definition" else "name"
    name = node.child_by_field_name(field)
    return "" if name is None else node_text(name)


def _functions(scope: Node, holder: str, *, protocol: bool = False) -> Iterator[_Function]:
    """The functions of the scope and of its classes, in order of place."""
    for statement in _statements(scope):
        inner = _inner(statement)
        if inner.type in CLASSES:
            body = inner.child_by_field_name("body")
            if body is not None:
                symbol = f"{holder}.{_name(inner)}".removeprefix(".")
                yield from _functions(body, symbol, protocol=_is_protocol(inner))
            continue
        for name, function in _functions_of(inner):
            symbol = f"{holder}.{name}".removeprefix(".")
            yield _Function(symbol=symbol, node=function, bodiless=protocol or _is_abstract(statement))


def _statements(scope: Node) -> Iterator[Node]:
    """The statements of the scope, and those in the blocks of its `if` and `try`."""
    for child in scope.named_children:
        if child.type in GUARDS:
            for part in child.named_children:
                inside = part.named_children if part.type.endswith("_clause") else [part]
                for block in (one for one in inside if one.type == "block"):
                    yield from _statements(block)
        else:
            yield child


def _functions_of(inner: Node) -> Iterator[tuple[str, Node]]:
    """Name and node of each function that a statement declares: itself, or what it assigns."""
    if inner.type in FUNCTIONS:
        yield _name(inner), inner
    elif inner.type in ASSIGNED:
        value = inner.child_by_field_name("value")
        if value is not None and value.type in FUNCTIONS:
            yield _name(inner), value
    elif inner.type in {"lexical_declaration", "variable_declaration"}:
        for child in inner.named_children:
            yield from _functions_of(child)
    elif inner.type == "expression_statement":
        for child in inner.named_children:
            value = child.child_by_field_name("right") if child.type in ASSIGNMENTS else None
            name = child.child_by_field_name("left")
            if value is not None and name is not None and value.type in FUNCTIONS:
                yield node_text(name), value


def _is_abstract(statement: Node) -> bool:
    """Whether a decorator says that it needs no body."""
    decorators = (child for child in statement.named_children if child.type == "decorator")
    return any(ABSTRACT.match(node_text(one)) for one in decorators)


def _is_protocol(node: Node) -> bool:
    bases = node.child_by_field_name("superclasses")
    return bases is not None and PROTOCOL.search(node_text(bases)) is not None


def _written(function: Node) -> list[Node] | None:
    """The statements of its body without docstring and comments; None if the body is an expression, or missing."""
    body = function.child_by_field_name("body")
    if body is None or body.type not in {"block", "statement_block"}:
        return None
    statements = [child for child in body.named_children if child.type != "comment"]
    return [one for number, one in enumerate(statements) if number or not is_bare_string(one)]


def _is_stub(function: Node) -> bool:
    written = _written(function)
    if written is None or len(written) != 1:
        return False
    pattern = RAISES if written[0].type == "raise_statement" else THROWS
    return written[0].type in {"raise_statement", "throw_statement"} and bool(
        pattern.match(node_text(written[0]))
    )


def _is_empty(function: Node) -> bool:
    """Whether it contains nothing but `...` or `pass`."""
    return all(node_text(one) in {"...", "pass"} for one in _written(function) or ())


def _statement_faults(statement: Node, *, protocol: bool = False) -> Iterator[str]:
    inner = _inner(statement)
    if inner.type in CLASSES:
        body = inner.child_by_field_name("body")
        for member in body.named_children if body is not None else ():
            yield from _statement_faults(member, protocol=_is_protocol(inner))
        return
    functions = list(_functions_of(inner))
    bodiless = protocol or _is_abstract(statement)
    for name, function in functions:
        if not (_is_stub(function) or (bodiless and _is_empty(function))):
            yield f"line {function.start_point[0] + 1}: the body of {name or 'a function'} is no stub"
    if functions or _declares(inner):
        return
    if inner.type in GUARDS:
        yield from _guard_faults(inner)
        return
    quoted = node_text(inner).split("\n")[0][:MAX_QUOTED]
    yield f"line {inner.start_point[0] + 1}: no declaration: {quoted}"


def _declares(node: Node) -> bool:
    """Whether the statement, which has no function in it, declares something and runs nothing."""
    if node.type in DECLARED | ASSIGNED | {"export_statement", "lexical_declaration", "variable_declaration"}:
        return True
    children = node.named_children
    if node.type != "expression_statement" or len(children) != 1:
        return False
    return children[0].type in ASSIGNMENTS | {"string", "ellipsis"}


def _guard_faults(guard: Node) -> Iterator[str]:
    """The faults of an `if` or `try` around imports: those of the statements in its blocks."""
    for child in guard.named_children:
        if child.type == "block":
            for statement in child.named_children:
                yield from _statement_faults(statement)
        elif child.type.endswith("_clause"):
            yield from _guard_faults(child)
