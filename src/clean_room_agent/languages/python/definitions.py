"""Extracts definitions, docstrings, comments and imports from Python files (`.py` and `.pyi`).

A class is a class whatever it derives from, even `Enum`: its base may come from anywhere. A lambda bound to a name is a
variable. Names bound by `for`, `with`, `except`, `import` and `:=` are not symbols.
"""

import ast
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from tree_sitter import Node

from clean_room_agent.languages.comments import merge_line_comments
from clean_room_agent.languages.parsed import (
    Definition,
    ParsedFile,
    RawImport,
    Span,
    dedented,
    last_line,
    outermost,
    text_of,
)

QUERY = """
(function_definition) @function
(class_definition) @class
(decorated_definition) @decorated
(expression_statement (assignment) @assignment)
(type_alias_statement) @alias
(import_statement) @import
(import_from_statement) @from
(comment) @comment
"""
MAX_VALUE = 200
"""Characters up to which a variable's signature shows its value."""
DOC_BEGINS = frozenset({b'"', b"'", b"r", b"R", b"u", b"U", b"#"})
"""First bytes of a docstring, or of a comment before it."""
NAME = re.compile(rb"(?:async\s+)?(?:def|class)[ \t]+([A-Za-z_0-9\x80-\xff]+)")
FLAG = b"TYPE_CHECKING"
CONDITION = re.compile(rb"[ \t]*((?:el)?if)\b")
IS_TYPES_ONLY = re.compile(r"\(*\s*(not\s+)?(?:\w+\.)*TYPE_CHECKING\s*\)*")
TARGET = re.compile(rb"([A-Za-z_]\w*)[ \t]*[=:]")
"""The usual one; other targets are asked for."""
TARGET_LISTS = frozenset({"pattern_list", "tuple_pattern", "list_pattern", "list_splat_pattern"})
OPENING = re.compile(rb"([rR]?|[uU])(\"\"\"|'''|\"|')")
ESCAPE = re.compile(
    r"\\(?:\n|[\\'\"abfnrtv]|[0-7]{1,3}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U000[0-9a-fA-F]{5}|N\{[A-Z0-9 -]+\})"
)


def read(root: Node, captures: Mapping[str, Sequence[Node]], source: bytes) -> ParsedFile:
    """Turn captured nodes into definitions, comments and imports."""
    functions, classes = captures.get("function", []), captures.get("class", [])
    outer = _decorated_definitions(captures.get("decorated", ()))
    definitions = [_make_definition(node, "function", outer, source) for node in functions]
    definitions.extend(_make_definition(node, "class", outer, source) for node in classes)
    for node in _shared_assignments(captures.get("assignment", []), functions, classes):
        definitions.extend(_variable_definitions(node, source))
    for node in captures.get("alias", ()):
        definitions.extend(_alias_definitions(node, source))
    comments = ((node, text_of(source, node).lstrip("#").strip()) for node in captures.get("comment", ()))
    return ParsedFile(
        definitions=definitions,
        comments=merge_line_comments(comments, source),
        imports=_imports(root, captures, source),
        module_doc=docstring_of(root, source),
    )


def _decorated_definitions(nodes: Iterable[Node]) -> dict[int, Node]:
    """Decorated definitions, by the byte at which they begin without their decorators."""
    found = {}
    for node in nodes:
        definition = node.child_by_field_name("definition")
        if definition is not None:
            found[definition.start_byte] = node
    return found


def _make_definition(node: Node, kind: str, decorated: dict[int, Node], source: bytes) -> Definition:
    start, end = node.byte_range
    body = node.child_by_field_name("body")
    written = NAME.match(source, start)
    outer = decorated.get(start, node)
    doc = ""
    if body is None:
        signature = text_of(source, node)
    else:
        begins = body.start_byte
        head = source[start:begins].rstrip()
        if b"#" in head or not head.endswith(b":"):
            head = _up_to_colon(node, source) or head
        signature = head.decode("utf-8", "replace")
        if source[begins : begins + 1] in DOC_BEGINS:
            doc = docstring_of(body, source)
    return Definition(
        _definition_name(node, source) if written is None else written[1].decode("utf-8", "replace"),
        kind,
        outer.start_byte,
        end,
        outer.start_point[0] + 1,
        last_line(node),
        signature,
        doc,
        "",
        True,
    )


def _definition_name(node: Node, source: bytes) -> str:
    name = node.child_by_field_name("name")
    return "" if name is None else text_of(source, name)


def _up_to_colon(node: Node, source: bytes) -> bytes:
    colons = [child.end_byte for child in node.children if child.type == ":"]
    return source[node.start_byte : colons[-1]] if colons else b""


def _shared_assignments(
    assignments: Sequence[Node], functions: Sequence[Node], classes: Sequence[Node]
) -> Iterator[Node]:
    """Assignments at module or class level, in the order of the file."""
    assignments = sorted(assignments, key=attrgetter("start_byte"))
    starts = [node.start_byte for node in assignments]
    inner_classes = sorted(node.byte_range for node in classes)
    place = 0
    for start, end in outermost(node.byte_range for node in functions):
        first = bisect_left(starts, start, place)
        yield from assignments[place:first]
        place = bisect_left(starts, end, first)
        if place > first and (within := [one for one in inner_classes if start < one[0] < end]):
            scopes = [(*one, False) for one in within]
            scopes.extend((*span, True) for node in functions if start <= (span := node.byte_range)[0] < end)
            yield from (node for node in assignments[first:place] if not _is_local(node, scopes))
    yield from assignments[place:]


def _is_local(node: Node, scopes: list[tuple[int, int, bool]]) -> bool:
    around = [scope for scope in scopes if scope[0] <= node.start_byte < scope[1]]
    return max(around)[2]


def _variable_definitions(node: Node, source: bytes) -> list[Definition]:
    annotation = node.child_by_field_name("type")
    kind = "variable"
    if annotation is not None and text_of(source, annotation).rpartition(".")[2].strip("'\"") == "TypeAlias":
        kind = "type_alias"
    start, end = node.byte_range
    signature = _assignment_signature(node, annotation, source)
    return [
        Definition(name, kind, start, end, node.start_point[0] + 1, last_line(node), signature)
        for name in _assigned_names(node, source)
    ]


def _assigned_names(node: Node, source: bytes) -> list[str]:
    """The names that an assignment binds, including all of a chain (`a = b = 1`)."""
    names: list[str] = []
    assignment: Node | None = node
    while assignment is not None and assignment.type == "assignment":
        simple = TARGET.match(source, assignment.start_byte)
        if simple is not None:
            names.append(simple[1].decode())
        elif (left := assignment.child_by_field_name("left")) is not None:
            names.extend(_bound_names(left, source))
        assignment = assignment.child_by_field_name("right")
    return names


def _bound_names(target: Node, source: bytes) -> list[str]:
    if target.type == "identifier":
        return [] if target.is_missing else [text_of(source, target)]
    if target.type not in TARGET_LISTS:
        return []
    return [name for child in target.named_children for name in _bound_names(child, source)]


def _assignment_signature(node: Node, annotation: Node | None, source: bytes) -> str:
    whole = text_of(source, node)
    if len(whole) <= MAX_VALUE:
        return whole
    head = annotation or node.child_by_field_name("left")
    assert head is not None, "the grammar gives every assignment a left side"
    return source[node.start_byte : head.end_byte].decode("utf-8", "replace") + " = ..."


def _alias_definitions(node: Node, source: bytes) -> list[Definition]:
    left = node.child_by_field_name("left")
    if left is None:
        return []
    return [
        Definition(
            text_of(source, left).partition("[")[0],
            "type_alias",
            node.start_byte,
            node.end_byte,
            node.start_point[0] + 1,
            last_line(node),
            text_of(source, node),
        )
    ]


def _imports(root: Node, captures: Mapping[str, Sequence[Node]], source: bytes) -> list[RawImport]:
    """All imports, in the order of the file."""
    guarded = _types_only(root, source)
    found: list[RawImport] = []
    for node in (*captures.get("import", ()), *captures.get("from", ())):
        start = node.start_byte
        is_guarded = any(first <= start < last for first, last in guarded)
        kind = "type_ref" if is_guarded else "import"
        pairs = [_imported_name(one, source) for one in node.children_by_field_name("name") if one.is_named]
        if any(child.type == "wildcard_import" for child in node.children):
            pairs = [("*", "")]
        module = node.child_by_field_name("module_name")
        if module is not None:
            names = tuple([name for name, _ in pairs])
            aliases = tuple([alias or name for name, alias in pairs])
            found.append(RawImport(_dotted_name(module, source), names, kind, aliases, start))
        else:
            found.extend(RawImport(name, (), kind, (alias,) if alias else (), start) for name, alias in pairs)
    found.sort(key=attrgetter("start"))
    return found


def _imported_name(name: Node, source: bytes) -> tuple[str, str]:
    """An imported name, and what it is called here, "" for the same."""
    alias = name.child_by_field_name("alias")
    inner = name.child_by_field_name("name")
    return _dotted_name(inner or name, source), "" if alias is None else text_of(source, alias)


def _dotted_name(name: Node, source: bytes) -> str:
    """A dotted name, which may have spaces or the end of a line around its dots."""
    return "".join(text_of(source, name).replace("\\", "").split())


def _types_only(root: Node, source: bytes) -> list[Span]:
    """Blocks that only type checkers see (`if TYPE_CHECKING:`)."""
    spans = []
    place = source.find(FLAG)
    while place >= 0:
        keyword = CONDITION.match(source, source.rfind(b"\n", 0, place) + 1, place)
        if keyword is not None:
            block = _types_only_block(root, keyword.end(1) - 1, source)
            if block is not None:
                spans.append(block.byte_range)
        place = source.find(FLAG, place + len(FLAG))
    return spans


def _types_only_block(root: Node, keyword: int, source: bytes) -> Node | None:
    word = root.descendant_for_byte_range(keyword, keyword)
    clause = None if word is None or word.type not in {"if", "elif"} else word.parent
    condition = None if clause is None else clause.child_by_field_name("condition")
    if clause is None or condition is None:
        return None
    flag = IS_TYPES_ONLY.fullmatch(text_of(source, condition))
    if flag is None:
        return None
    if flag[1] is None:
        return clause.child_by_field_name("consequence")
    other = clause.child_by_field_name("alternative")
    return other if other is not None and other.type == "else_clause" else None


def docstring_of(block: Node, source: bytes) -> str:
    """The dedented docstring at the start of a body or module; "" if there is none."""
    count, place = block.named_child_count, 0
    while place < count and block.named_child(place).type == "comment":
        place += 1
    if place == count:
        return ""
    first = block.named_child(place)
    if first.type != "expression_statement" or first.named_child_count != 1:
        return ""
    string = first.named_child(0)
    parts = string.named_children if string.type == "concatenated_string" else [string]
    return dedented("".join(_literal_text(source, part) for part in parts if part.type == "string"))


def _literal_text(source: bytes, string: Node) -> str:
    """Evaluate a string literal that may be a docstring; "" for bytes and f-strings."""
    opening = OPENING.match(source, string.start_byte, string.end_byte)
    if opening is None:
        return ""
    text = source[opening.end() : string.end_byte - len(opening[2])].decode("utf-8", "replace")
    return ESCAPE.sub(_unescape, text) if "\\" in text and opening[1] not in {b"r", b"R"} else text


def _unescape(found: re.Match[str]) -> str:
    value = ast.literal_eval(f"'''{found[0]}'''")
    assert isinstance(value, str)
    return value
