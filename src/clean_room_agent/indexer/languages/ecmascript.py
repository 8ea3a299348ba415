"""JavaScript and TypeScript, with JSX."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from clean_room_agent.indexer.languages.comments import merge_line_comments
from clean_room_agent.indexer.languages.jsdoc import DocComments
from clean_room_agent.indexer.languages.parsed import Definition, Parsed, RawImport, last_line, text_of

FUNCTIONS = frozenset({"arrow_function", "function_expression", "generator_function"})
FUNCTION = "[(arrow_function) (function_expression) (generator_function)]"
CALLABLE = "[(arrow_function) (function_expression) (generator_function) (class)]"
COMMON_QUERY = f"""
(function_declaration) @function
(generator_function_declaration) @function
(class_declaration) @class
(method_definition) @method
(variable_declarator name: (identifier) value: {CALLABLE}) @bound
(assignment_expression left: [(identifier) (member_expression)] right: {CALLABLE}) @bound
(pair key: (property_identifier) value: {FUNCTION}) @pair
(export_statement value: (_)) @default
(program (expression_statement (assignment_expression left: (member_expression)) @exported))
(program (lexical_declaration (variable_declarator name: (identifier)) @variable))
(program (variable_declaration (variable_declarator name: (identifier)) @variable))
(program (export_statement (lexical_declaration (variable_declarator name: (identifier)) @variable)))
(program (export_statement (variable_declaration (variable_declarator name: (identifier)) @variable)))
(import_statement) @import
(export_statement source: (string)) @import
(call_expression function: (identifier) @callee arguments: (arguments . (string) @required) (#eq? @callee "require"))
(call_expression function: (import) arguments: (arguments . (string) @required))
(comment) @comment
"""
JAVASCRIPT_QUERY = COMMON_QUERY + "(field_definition) @field\n"
TYPESCRIPT_QUERY = (
    COMMON_QUERY
    + """
(public_field_definition) @field
(abstract_class_declaration) @class
(interface_declaration) @interface
(type_alias_declaration) @type_alias
(enum_declaration) @enum
(function_signature) @function
(method_signature) @method
(abstract_method_signature) @method
(program (ambient_declaration (lexical_declaration (variable_declarator name: (identifier)) @variable)))
"""
)
DECLARATIONS = ("function", "class", "method", "interface", "type_alias", "enum")
WRAPPERS = frozenset(
    {
        "lexical_declaration",
        "variable_declaration",
        "export_statement",
        "ambient_declaration",
        "expression_statement",
    }
)
HOLDING = frozenset({"function", "method", "class", "interface"})
OBJECTS = frozenset({"object", "as_expression", "satisfies_expression", "call_expression"})
"""Values whose functions belong to the variable."""
MAX_VALUE = 200
"""Characters up to which the signature of a variable or a type shows its value."""


class EcmaScriptReader:
    """Reads the nodes of JavaScript's and TypeScript's grammars."""

    def query(self, grammar: str) -> str:
        """The query's text; the grammars do not know one another's nodes."""
        return JAVASCRIPT_QUERY if grammar == "javascript" else TYPESCRIPT_QUERY

    def read(self, root: Node, captures: dict[str, list[Node]], source: bytes) -> Parsed:
        """What the captured nodes say."""
        parsed = Parsed()
        docs = DocComments(captures.get("comment", []), source)
        file = _File(source=source, docs=docs)
        seen: set[tuple[int, str]] = set()
        for capture in CAPTURES:
            for node in captures.get(capture, ()):
                definition = _definition(node, capture, file)
                if definition is not None and (definition.start, definition.name) not in seen:
                    seen.add((definition.start, definition.name))
                    parsed.definitions.append(definition)
        for capture in ("import", "required"):
            for node in captures.get(capture, ()):
                parsed.imports.extend(_imports(node, capture, source))
        parsed.imports.sort(key=lambda one: one.start)
        parsed.module_doc = docs.module_doc(root)
        parsed.comments = merge_line_comments(docs.others(), source)
        return parsed


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    source: bytes
    docs: DocComments

    def text(self, node: Node | None) -> str:
        """The node's text; "" for no node."""
        return "" if node is None else text_of(self.source, node)

    def name(self, node: Node, field: str) -> str:
        """The text of the node's field, without quotes."""
        return self.text(node.child_by_field_name(field)).strip("'\"")


def _definition(node: Node, capture: str, file: _File) -> Definition | None:
    if capture in DECLARATIONS:
        in_object = capture == "method" and node.parent is not None and node.parent.type == "object"
        return _make(file, node, file.name(node, "name"), capture, body_of=node, needs_holder=in_object)
    read = READ.get(capture)
    return None if read is None else read(node, file)


def _bound(node: Node, file: _File) -> Definition | None:
    is_declarator = node.type == "variable_declarator"
    target = file.text(node.child_by_field_name("name" if is_declarator else "left"))
    value = node.child_by_field_name("value" if is_declarator else "right")
    if value is None:
        return None
    owner, name = _target(target, file.name(value, "name"))
    kind = "class" if value.type == "class" else "method" if ".prototype." in target else "function"
    return _make(file, node, name, kind, body_of=value, owner=owner)


def _target(target: str, own_name: str) -> tuple[str, str]:
    """Owner and name of what is assigned to a target: `A.prototype.m` is A's m, `exports.f` is f."""
    written = "".join(target.split()).split(".")
    parts = [part for part in written if part not in {"prototype", "this", "module"}]
    if parts == ["exports"]:
        return "", own_name or "exports"
    if parts and parts[0] == "exports":
        parts = parts[1:]
    return ".".join(parts[:-1]), parts[-1] if parts else own_name


def _pair(node: Node, file: _File) -> Definition | None:
    value = node.child_by_field_name("value")
    return _make(file, node, file.name(node, "key"), "method", body_of=value, needs_holder=True)


def _field(node: Node, file: _File) -> Definition | None:
    value = node.child_by_field_name("value")
    name = file.name(node, "property") or file.name(node, "name")
    if value is not None and value.type in FUNCTIONS:
        return _make(file, node, name, "method", body_of=value)
    return _make(file, node, name, "variable", value=value)


def _default(node: Node, file: _File) -> Definition | None:
    value = node.child_by_field_name("value")
    if value is None or value.type == "identifier":
        return None
    kind = "class" if value.type == "class" else "function" if value.type in FUNCTIONS else "variable"
    return _make(file, node, file.name(value, "name") or "default", kind, body_of=value, value=value)


def _exported(node: Node, file: _File) -> Definition | None:
    right = node.child_by_field_name("right")
    if right is None or right.type in FUNCTIONS or right.type == "class":
        return None
    target = file.text(node.child_by_field_name("left"))
    is_exports = target == "module.exports" or target.startswith(("exports.", "module.exports."))
    if not is_exports or (right.type == "identifier" and target == "module.exports"):
        return None
    return _make(file, node, _target(target, "")[1], "variable", value=right)


def _variable(node: Node, file: _File) -> Definition | None:
    value = node.child_by_field_name("value")
    if value is not None and (value.type in FUNCTIONS or value.type == "class"):
        return None
    return _make(file, node, file.name(node, "name"), "variable", value=value)


READ: Mapping[str, Callable[[Node, _File], Definition | None]] = {
    "bound": _bound,
    "pair": _pair,
    "field": _field,
    "default": _default,
    "exported": _exported,
    "variable": _variable,
}
CAPTURES = (*DECLARATIONS, *READ)


def _make(
    file: _File,
    node: Node,
    name: str,
    kind: str,
    *,
    owner: str = "",
    body_of: Node | None = None,
    value: Node | None = None,
    needs_holder: bool = False,
) -> Definition | None:
    if not name:
        return None
    outer = _outer(node)
    start, row = _first(outer)
    body = None if body_of is None or kind == "variable" else body_of.child_by_field_name("body")
    return Definition(
        name=name,
        kind=kind,
        start=start,
        end=outer.end_byte,
        start_line=row + 1,
        end_line=last_line(outer),
        signature=_signature(node, outer, body, file.source),
        doc=file.docs.at(start),
        owner=owner,
        holds=kind in HOLDING or (value is not None and value.type in OBJECTS),
        needs_holder=needs_holder,
    )


def _outer(node: Node) -> Node:
    """The statement that is nothing but this definition, `export` included."""
    while node.parent is not None and node.parent.type in WRAPPERS:
        declarators = sum(child.type == "variable_declarator" for child in node.parent.named_children)
        if declarators > 1:
            break
        node = node.parent
    return node


def _first(outer: Node) -> tuple[int, int]:
    """First byte and row, with decorators that stand before the definition as its siblings."""
    first, before = outer, outer.prev_named_sibling
    while before is not None and before.type == "decorator":
        first, before = before, before.prev_named_sibling
    return first.start_byte, first.start_point[0]


def _signature(node: Node, outer: Node, body: Node | None, source: bytes) -> str:
    start = outer.start_byte
    for holder in (outer, node):
        for child in holder.children[:50]:
            if child.type == "decorator" and child.next_sibling is not None:
                start = max(start, child.next_sibling.start_byte)
    if body is not None:
        return source[start : body.start_byte].decode("utf-8", "replace").rstrip()
    whole = source[start : outer.end_byte].decode("utf-8", "replace").rstrip("; \n")
    if len(whole) <= MAX_VALUE:
        return whole
    value = node.child_by_field_name("value") or node.child_by_field_name("right")
    return whole if value is None else source[start : value.start_byte].decode("utf-8", "replace") + "..."


def _imports(node: Node, capture: str, source: bytes) -> list[RawImport]:
    if capture == "required":
        return [RawImport(text_of(source, node)[1:-1], start=node.start_byte)]
    kind = "type_ref" if any(child.type == "type" for child in node.children[:3]) else "import"
    string = node.child_by_field_name("source")
    if string is None:
        clause = next((child for child in node.children if child.type == "import_require_clause"), None)
        string = None if clause is None else clause.child_by_field_name("source")
    target = "" if string is None else text_of(source, string)[1:-1]
    return [] if string is None else [RawImport(target, kind=kind, start=node.start_byte)]
