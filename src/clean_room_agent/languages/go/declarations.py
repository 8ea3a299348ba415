"""Definitions, comments and imports of Go files.

Structs are classes, interfaces are interfaces, other types are aliases; a method belongs to the type of its receiver,
wherever that is defined. Fields are no symbols. What is in brackets after `const`, `var` or `type` has its own lines.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tree_sitter import Node

from clean_room_agent.languages.comments import merge_line_comments
from clean_room_agent.languages.parsed import Definition, ParsedFile, RawImport, dedented, last_line, text_of

QUERY = """
(source_file) @file
(comment) @comment
"""
MAX_VALUE = 200
"""Characters up to which the signature of a variable or a type shows its value."""
WORDS = {"const_declaration": "const", "var_declaration": "var", "type_declaration": "type"}
SPECS = frozenset({"const_spec", "var_spec", "type_spec", "type_alias"})
KINDS = {"struct_type": "class", "interface_type": "interface"}
MARK = re.compile(r"^(?://[ \t]?|/\*+)|\*/\Z")
DIRECTIVE = re.compile(r"//(?:go:|nolint\b|line |export |lint:)|// \+build\b")


class Declaration(NamedTuple):
    """A declaration of a file's top level, or a method of an interface."""

    node: Node
    """The function, the method or the `…_spec`."""
    outer: Node
    """With its `const`, `var` or `type`, if it is the only one of it."""
    word: str
    """`const`, `var` or `type`; "" for functions and methods."""


def declarations(root: Node) -> Iterator[Declaration]:
    """What a file declares at its top level, in order."""
    for node in root.named_children:
        if node.type in {"function_declaration", "method_declaration"}:
            yield Declaration(node, node, "")
        elif node.type in WORDS:
            inner = [
                one
                for child in node.named_children
                for one in (child.named_children if child.type == "var_spec_list" else [child])
            ]
            in_brackets = any(child.type == "(" for child in node.children) or len(inner) > 1
            for spec in inner:
                if spec.type in SPECS:
                    yield Declaration(spec, spec if in_brackets else node, WORDS[node.type])


def names_of(node: Node) -> list[Node]:
    """The names that a declaration gives."""
    return [one for one in node.children_by_field_name("name") if one.type != ","]


def type_of(node: Node) -> Node | None:
    """The type that a `type_spec` gives a name to."""
    return node.child_by_field_name("type")


def receiver_of(method: Node) -> str:
    """The name of the type that a method belongs to; "" for anything else."""
    receiver = method.child_by_field_name("receiver") if method.type == "method_declaration" else None
    waiting = [] if receiver is None else list(receiver.named_children)
    while waiting:
        node = waiting.pop(0)
        if node.type == "type_identifier":
            return (node.text or b"").decode("utf-8", "replace")
        following = node.child_by_field_name("type")
        waiting = [following] if following is not None else node.named_children[:1]
    return ""


def members_of(spec: Node) -> Iterator[Node]:
    """The methods of an interface."""
    inner = type_of(spec)
    if inner is not None and inner.type == "interface_type":
        yield from (one for one in inner.named_children if one.type == "method_elem")


def read(captures: Mapping[str, Sequence[Node]], source: bytes) -> ParsedFile:
    """Turn captured nodes into definitions, comments and imports."""
    root = captures["file"][0] if captures.get("file") else None
    comments = _Comments(captures.get("comment", ()), source)
    parsed = ParsedFile()
    for node in () if root is None else root.named_children:
        if node.type == "package_clause":
            parsed.module_doc = comments.above(node.start_point.row)
        elif node.type == "import_declaration":
            parsed.imports.extend(_imports(node, source))
    for one in () if root is None else declarations(root):
        parsed.definitions.extend(_definitions(one, comments, source))
    parsed.comments = merge_line_comments(comments.others(), source)
    return parsed


def _definitions(declared: Declaration, comments: "_Comments", source: bytes) -> Iterator[Definition]:
    node, outer, word = declared
    doc = comments.above(outer.start_point.row)
    if not word:
        kind = "method" if node.type == "method_declaration" else "function"
        yield _make_definition(
            node, outer, kind, _function_signature(node, source), doc, receiver_of(node), source
        )
        return
    inner = type_of(node)
    text = text_of(source, node)
    if word == "type" and inner is not None:
        kind = KINDS.get(inner.type, "type_alias")
        whole = f"type {text}"
        if inner.type in KINDS or len(whole) > MAX_VALUE:
            head = source[node.start_byte : inner.start_byte].decode("utf-8", "replace")
            whole = f"type {head}{inner.type.partition('_')[0]}"
        yield _make_definition(node, outer, kind, whole, doc, "", source)
        for member in members_of(node):
            above = comments.above(member.start_point.row)
            yield _make_definition(member, member, "method", text_of(source, member), above, "", source)
        return
    if len(text) > MAX_VALUE:
        value = node.child_by_field_name("value")
        end = node.end_byte if value is None else value.start_byte
        text = f"{source[node.start_byte : end].decode('utf-8', 'replace')}..."
    for name in names_of(node):
        yield _make_definition(name, outer, "variable", f"{word} {text}", doc, "", source)


def _make_definition(
    node: Node, outer: Node, kind: str, signature: str, doc: str, owner: str, source: bytes
) -> Definition:
    name = node if kind == "variable" else node.child_by_field_name("name")
    return Definition(
        "" if name is None else text_of(source, name),
        kind,
        outer.start_byte,
        outer.end_byte,
        outer.start_point.row + 1,
        last_line(outer),
        signature,
        doc,
        owner,
        holds=kind == "interface",
    )


def _function_signature(function: Node, source: bytes) -> str:
    body = function.child_by_field_name("body")
    end = function.end_byte if body is None else body.start_byte
    return source[function.start_byte : end].decode("utf-8", "replace").rstrip()


def _imports(declaration: Node, source: bytes) -> Iterator[RawImport]:
    specs = [one for child in declaration.named_children for one in (child, *child.named_children)]
    for spec in specs:
        path = spec.child_by_field_name("path") if spec.type == "import_spec" else None
        if path is not None:
            alias = spec.child_by_field_name("name")
            named = () if alias is None else (text_of(source, alias),)
            yield RawImport(text_of(source, path).strip('"`'), (), "import", named, spec.start_byte)


class _Comments:
    """The comments of a file; those right above something document it."""

    def __init__(self, nodes: Sequence[Node], source: bytes) -> None:
        self._source = source
        self._nodes = sorted(nodes, key=lambda node: node.start_byte)
        self._ending: dict[int, Node] = {}
        for node in self._nodes:
            line = source.rfind(b"\n", 0, node.start_byte) + 1
            if not source[line : node.start_byte].strip():
                self._ending[node.end_point.row] = node
        self._used: set[int] = set()

    def above(self, row: int) -> str:
        """What documents the thing that begins in a row (0-based)."""
        found: list[Node] = []
        while (node := self._ending.get(row - 1)) is not None:
            found.insert(0, node)
            row = node.start_point.row
        self._used.update(node.start_byte for node in found)
        return dedented("\n".join(text for text in map(self._comment_text, found) if text is not None))

    def others(self) -> list[tuple[Node, str]]:
        """Those that document nothing, without their marks."""
        left = [(node, self._comment_text(node)) for node in self._nodes if node.start_byte not in self._used]
        return [(node, text) for node, text in left if text]

    def _comment_text(self, node: Node) -> str | None:
        """Without its marks; None for what only tools read."""
        text = text_of(self._source, node)
        return None if DIRECTIVE.match(text) else MARK.sub("", text).strip()
