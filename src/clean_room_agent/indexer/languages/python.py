"""Python: `.py` and `.pyi`."""

import inspect

from tree_sitter import Node

from clean_room_agent.indexer.languages.comments import merge_line_comments
from clean_room_agent.indexer.languages.parsed import (
    Comment,
    Definition,
    Parsed,
    RawImport,
    last_line,
    text_of,
)

QUERY = """
(function_definition) @function
(class_definition) @class
(expression_statement (assignment) @assignment)
(type_alias_statement) @alias
(import_statement) @import
(import_from_statement) @from
(comment) @comment
(if_statement condition: (identifier) @flag consequence: (block) @types_only (#eq? @flag "TYPE_CHECKING"))
(if_statement condition: (attribute attribute: (identifier) @flag) consequence: (block) @types_only
  (#eq? @flag "TYPE_CHECKING"))
"""
MAX_VALUE = 200
"""Characters up to which a variable's signature shows its value."""


class PythonReader:
    """Reads Python's matches."""

    def query(self, grammar: str) -> str:  # noqa: ARG002 - there is one grammar
        """The query's text."""
        return QUERY

    def read(self, root: Node, matches: list[tuple[int, dict[str, list[Node]]]], source: bytes) -> Parsed:
        """What the matches say."""
        parsed = Parsed(module_doc=_docstring(root, source))
        types_only = [
            (node.start_byte, node.end_byte) for _, found in matches for node in found.get("types_only", ())
        ]
        comments = []
        for _, found in matches:
            for capture, nodes in found.items():
                node = nodes[0]
                if capture in {"function", "class"}:
                    parsed.definitions.append(_definition(node, capture, source))
                elif capture == "assignment":
                    parsed.definitions.extend(_variables(node, source))
                elif capture == "alias":
                    parsed.definitions.extend(_alias(node, source))
                elif capture == "comment":
                    comments.append(node)
                elif capture in {"import", "from"}:
                    guarded = any(start <= node.start_byte < end for start, end in types_only)
                    read = _plain_imports if capture == "import" else _from_imports
                    parsed.imports.extend(read(node, source, "type_ref" if guarded else "import"))
        parsed.comments = _comments(comments, source)
        return parsed


def _definition(node: Node, capture: str, source: bytes) -> Definition:
    parent = node.parent
    outer = parent if parent is not None and parent.type == "decorated_definition" else node
    body = node.child_by_field_name("body")
    name = node.child_by_field_name("name")
    return Definition(
        name="" if name is None else text_of(source, name),
        kind=capture,
        start=outer.start_byte,
        end=outer.end_byte,
        start_line=outer.start_point[0] + 1,
        end_line=last_line(outer),
        signature=_signature(node, body, source),
        doc="" if body is None else _docstring(body, source),
        holds=True,
    )


def _signature(node: Node, body: Node | None, source: bytes) -> str:
    if body is None:
        return text_of(source, node)
    colon = body.prev_sibling
    while colon is not None and colon.type != ":":
        colon = colon.prev_sibling
    end = body.start_byte if colon is None else colon.end_byte
    return source[node.start_byte : end].decode("utf-8", "replace").rstrip()


def _docstring(block: Node, source: bytes) -> str:
    first = next((child for child in block.named_children[:20] if child.type != "comment"), None)
    if first is None or first.type != "expression_statement" or first.named_child_count != 1:
        return ""
    string = first.named_child(0)
    if string.type != "string" or string.child_count < 2:
        return ""
    opening, closing = string.child(0), string.child(string.child_count - 1)
    if set("bBfF") & set(text_of(source, opening)):
        return ""
    return inspect.cleandoc(source[opening.end_byte : closing.start_byte].decode("utf-8", "replace"))


def _variables(node: Node, source: bytes) -> list[Definition]:
    left = node.child_by_field_name("left")
    if left is None:
        return []
    targets = (
        [left] if left.type == "identifier" else left.named_children if left.type == "pattern_list" else []
    )
    annotation = node.child_by_field_name("type")
    is_alias = annotation is not None and text_of(source, annotation).rpartition(".")[2] == "TypeAlias"
    return [
        Definition(
            name=text_of(source, target),
            kind="type_alias" if is_alias else "variable",
            start=node.start_byte,
            end=node.end_byte,
            start_line=node.start_point[0] + 1,
            end_line=last_line(node),
            signature=_assignment_signature(node, left, annotation, source),
        )
        for target in targets
        if target.type == "identifier"
    ]


def _assignment_signature(node: Node, left: Node, annotation: Node | None, source: bytes) -> str:
    whole = text_of(source, node)
    if len(whole) <= MAX_VALUE:
        return whole
    head_end = (left if annotation is None else annotation).end_byte
    return source[node.start_byte : head_end].decode("utf-8", "replace") + " = ..."


def _alias(node: Node, source: bytes) -> list[Definition]:
    left = node.child_by_field_name("left")
    if left is None:
        return []
    return [
        Definition(
            name=text_of(source, left).partition("[")[0],
            kind="type_alias",
            start=node.start_byte,
            end=node.end_byte,
            start_line=node.start_point[0] + 1,
            end_line=last_line(node),
            signature=text_of(source, node),
        )
    ]


def _plain_imports(node: Node, source: bytes, kind: str) -> list[RawImport]:
    return [RawImport(target=name, kind=kind) for name in _imported_names(node, source)]


def _from_imports(node: Node, source: bytes, kind: str) -> list[RawImport]:
    module = node.child_by_field_name("module_name")
    if module is None:
        return []
    target = "".join(text_of(source, module).split())
    return [RawImport(target=target, names=_imported_names(node, source), kind=kind)]


def _imported_names(node: Node, source: bytes) -> tuple[str, ...]:
    names = []
    for child in node.children_by_field_name("name"):
        named = child.child_by_field_name("name") if child.type == "aliased_import" else child
        if named is not None:
            names.append("".join(text_of(source, named).split()))
    return tuple(names)


def _comments(nodes: list[Node], source: bytes) -> list[Comment]:
    return merge_line_comments([(node, text_of(source, node).lstrip("#").strip()) for node in nodes], source)
