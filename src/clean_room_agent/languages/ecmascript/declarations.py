"""Extracts definitions, comments and imports from JavaScript and TypeScript files, with JSX.

Namespaces, modules and `declare global` are stored as variables that contain other symbols. Constructors and accessors
are methods. Not symbols: signatures without a name (calls, `new`, indexes), properties of interfaces, enum members and
static blocks.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tree_sitter import Node

from clean_room_agent.languages.comments import merge_line_comments
from clean_room_agent.languages.ecmascript.imports import read_imports
from clean_room_agent.languages.ecmascript.nodes import NAMELESS
from clean_room_agent.languages.ecmascript.source import ScriptSource, target_of, unwrapped
from clean_room_agent.languages.ecmascript.statements import Statements
from clean_room_agent.languages.parsed import Definition, ParsedFile, outermost

FUNCTION = "(arrow_function) (function_expression) (generator_function)"
COMMON_QUERY = f"""
(function_declaration) @function
(generator_function_declaration) @function
(class_declaration) @class
(object (method_definition) @method)
(assignment_expression right: [{FUNCTION} (class)]) @assigned
(pair value: [{FUNCTION}]) @pair
(decorator) @decorator
(comment) @comment
"""
JAVASCRIPT_QUERY = (
    COMMON_QUERY
    + f"""
(class_body (method_definition) @method)
(field_definition) @field
(variable_declarator value: [{FUNCTION} (class) (parenthesized_expression)]) @bound
"""
)
TYPESCRIPT_QUERY = (
    COMMON_QUERY
    + f"""
(class_body [(method_definition) (method_signature) (abstract_method_signature)] @method)
(public_field_definition) @field
(variable_declarator value: [{FUNCTION} (class) (parenthesized_expression) (as_expression)
  (satisfies_expression)]) @bound
(abstract_class_declaration) @class
(interface_declaration) @interface
(interface_body (method_signature) @method)
(type_alias_declaration) @type_alias
(enum_declaration) @enum
(function_signature) @function
"""
)
DECLARATIONS = ("function", "class", "method", "interface", "type_alias", "enum")
FULL = frozenset({"function", "method", "class"})


def query(grammar: str) -> str:
    """What is captured; JavaScript and TypeScript do not share all node types."""
    return JAVASCRIPT_QUERY if grammar == "javascript" else TYPESCRIPT_QUERY


def read(root: Node, captures: Mapping[str, Sequence[Node]], source: bytes, *, typed: bool) -> ParsedFile:
    """Turn captured nodes into definitions, comments and imports."""
    file = ScriptSource(source, captures.get("comment", ()), captures.get("decorator", ()))
    statements = Statements(file, root)
    definitions = statements.definitions
    for kind in DECLARATIONS:
        for node in captures.get(kind, ()):
            definitions.append(file.make(node, file.name(node, "name"), kind, body_of=node))
    for capture, read in READ.items():
        for node in captures.get(capture, ()):
            found = read(node, file)
            if found is not None:
                definitions.append(found)
    definitions.extend(_object_methods(captures.get("pair", ()), file, definitions))
    if not typed:
        definitions.extend(file.typedefs())
    return ParsedFile(
        definitions=[one for one in definitions if one.name],
        imports=read_imports(root, statements.imports, source),
        module_doc=file.module_doc(root),
        comments=merge_line_comments(file.other_comments(), source),
    )


def _declarator_definition(node: Node, file: ScriptSource) -> Definition | None:
    value = unwrapped(node.child_by_field_name("value"))
    if value is None or (value.type not in NAMELESS and value.type != "class"):
        return None
    kind = "class" if value.type == "class" else "function"
    return file.make(file.declared(node), file.name(node, "name"), kind, body_of=value)


def _assigned_definition(node: Node, file: ScriptSource) -> Definition | None:
    left, value = node.child_by_field_name("left"), node.child_by_field_name("right")
    if left is None or value is None or left.type not in {"identifier", "member_expression"}:
        return None
    target = file.text(left)
    owner, name = target_of(target, file.name(value, "name"))
    kind = "class" if value.type == "class" else "method" if ".prototype." in target else "function"
    return file.make(node, name, kind, body_of=value, owner=owner)


def _object_methods(
    nodes: Iterable[Node], file: ScriptSource, definitions: Iterable[Definition]
) -> Iterator[Definition]:
    """Functions that are values of an object's keys. Outside functions, methods and classes they need a variable."""
    spans = list(outermost((one.start, one.end) for one in definitions if one.kind in FULL))
    starts = [start for start, _ in spans]
    for node in nodes:
        before = bisect_right(starts, node.start_byte) - 1
        inside = before >= 0 and node.start_byte < spans[before][1]
        value = node.child_by_field_name("value")
        yield file.make(node, file.name(node, "key"), "method", body_of=value, needs_holder=not inside)


def _field_definition(node: Node, file: ScriptSource) -> Definition | None:
    value = unwrapped(node.child_by_field_name("value"))
    name = file.name(node, "property") or file.name(node, "name")
    if value is not None and value.type in NAMELESS:
        return file.make(node, name, "method", body_of=value)
    return file.make(node, name, "variable", value=value, holds=value is not None)


READ: Mapping[str, Callable[[Node, ScriptSource], Definition | None]] = {
    "bound": _declarator_definition,
    "assigned": _assigned_definition,
    "field": _field_definition,
}
