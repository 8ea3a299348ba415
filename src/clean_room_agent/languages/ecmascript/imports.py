"""Imports of a JavaScript or TypeScript file: statements, `require`, dynamic `import`, type references."""

import re
from collections.abc import Iterable, Iterator
from operator import attrgetter

from tree_sitter import Node

from clean_room_agent.languages.parsed import RawImport, text_of

TYPES_ONLY = re.compile(
    r"(?:import|export)\s+type\s+(?:[{*]|(?!from\s*['\"])[\w$])"
    r"|(?:import|export)\s*\{(?:\s*type\s+[^,}]+,?)+\s*\}\s*from\b"
)
LITERAL = rb"""\s*\(\s*(?:/\*.*?\*/\s*)*(?:"([^"\\\n]+)"|'([^'\\\n]+)'|`([^`\\$\n]+)`)"""
CALLED = (
    (re.compile(rb"require(?:\s*\.\s*resolve)?" + LITERAL), "identifier"),
    (re.compile(rb"import" + LITERAL), "import"),
)
"""Each begins with a literal, for which `re` can search quickly; and what the node there is."""
REFERENCE = re.compile(rb"""^///\s*<reference\s+path\s*=\s*["']([^"'\n]+)["']""", re.MULTILINE)
TYPE_CONTEXTS = frozenset(
    {"type_annotation", "type_query", "type_alias_declaration", "type_arguments"}
    | {"interface_body", "extends_type_clause", "object_type"}
)
VALUE_CONTEXTS = frozenset({"statement_block", "program", "arguments", "class_body", "object"})


def read_imports(root: Node, statements: Iterable[Node], source: bytes) -> list[RawImport]:
    """All imports, in the order of the file."""
    found = [one for node in statements for one in _statement_imports(node, source)]
    found.extend(_call_imports(root, source))
    if b"<reference" in source:
        found.extend(
            RawImport(_relative_path(one[1].decode("utf-8", "replace")), kind="type_ref", start=one.start())
            for one in REFERENCE.finditer(source)
        )
    found.sort(key=attrgetter("start"))
    return found


def _statement_imports(node: Node, source: bytes) -> Iterator[RawImport]:
    string = node.child_by_field_name("source")
    if string is None:
        clause = next((child for child in node.children if child.type == "import_require_clause"), None)
        string = None if clause is None else clause.child_by_field_name("source")
    if string is not None:
        start = node.start_byte
        kind = "type_ref" if TYPES_ONLY.match(text_of(source, node)) else "import"
        yield RawImport(text_of(source, string)[1:-1], kind=kind, start=start)


def _call_imports(root: Node, source: bytes) -> Iterator[RawImport]:
    """`require("…")` and `import("…")` with a string literal."""
    for pattern, kind in CALLED:
        for found in pattern.finditer(source):
            start = found.start()
            node = root.descendant_for_byte_range(start, start)
            call = None if node is None or node.type != kind or node.start_byte != start else node.parent
            while call is not None and call.type in {"member_expression", "import"}:
                call = call.parent
            if call is not None and call.type == "call_expression":
                target = (found[1] or found[2] or found[3]).decode("utf-8", "replace")
                yield RawImport(target, kind="type_ref" if _is_type(call) else "import", start=start)


def _is_type(call: Node) -> bool:
    around = call.parent
    while around is not None and around.type not in VALUE_CONTEXTS:
        if around.type in TYPE_CONTEXTS:
            return True
        around = around.parent
    return False


def _relative_path(path: str) -> str:
    return path if path.startswith((".", "/")) else f"./{path}"
