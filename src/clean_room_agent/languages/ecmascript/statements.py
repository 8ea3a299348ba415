"""Definitions made by statements of a module or a namespace: variables, exports, nested namespaces."""

from collections.abc import Callable, Mapping

from tree_sitter import Node

from clean_room_agent.languages.ecmascript.nodes import NAMELESS
from clean_room_agent.languages.ecmascript.source import ScriptSource, target_of, unwrapped
from clean_room_agent.languages.parsed import Definition

CALLABLE = NAMELESS | {"class"}
NAMED_PATTERNS = frozenset({"identifier", "shorthand_property_identifier_pattern"})
PATTERN_FIELDS = {"pair_pattern": "value", "object_assignment_pattern": "left", "assignment_pattern": "left"}
PATTERNS = frozenset({"object_pattern", "array_pattern", "rest_pattern"})


class Statements:
    """Collects definitions in one walk over the statements outside functions and classes.

    Attributes:
        definitions: what was defined.
        imports: the statements that import or re-export.
    """

    def __init__(self, file: ScriptSource, root: Node) -> None:
        self.definitions: list[Definition] = []
        self.imports: list[Node] = []
        self._file = file
        self._read: Mapping[str, Callable[[Node, Node], None]] = {
            "import_statement": self._add_import,
            "export_statement": self._read_export,
            "lexical_declaration": self._add_variables,
            "variable_declaration": self._add_variables,
            "expression_statement": self._read_expression,
            "ambient_declaration": self._read_ambient,
            "internal_module": self._add_namespace,
            "module": self._add_namespace,
        }
        self._walk_body(root)

    def _walk_body(self, body: Node) -> None:
        for node in body.named_children:
            read = self._read.get(node.type)
            if read is not None:
                read(node, node)

    def _read_declaration(self, node: Node, outer: Node) -> None:
        """A declaration; `outer` is the whole statement."""
        self._file.outer[node.start_byte] = outer
        read = self._read.get(node.type)
        if read is not None:
            read(node, outer)

    def _add_import(self, node: Node, outer: Node) -> None:
        self.imports.append(node)

    def _read_export(self, node: Node, outer: Node) -> None:
        declaration = node.child_by_field_name("declaration")
        if declaration is not None:
            self._read_declaration(declaration, outer)
            return
        if node.child_by_field_name("source") is not None:
            self.imports.append(node)
            return
        value = node.child_by_field_name("value")
        if value is not None:
            self._add_exported_value(node, value, "default")
        elif node.named_child_count and any(child.type == "=" for child in node.children[:3]):
            self._add_exported_value(node, node.named_child(0), "exports")

    def _add_exported_value(self, node: Node, written: Node, name: str) -> None:
        value = unwrapped(written) or written
        if value.type in {"identifier", "member_expression"}:
            return
        if value.type in CALLABLE:
            self._add_callable(node, self._file.name(value, "name") or name, value)
        else:
            self.definitions.append(self._file.make(node, name, "variable", value=written, holds=True))

    def _add_callable(self, node: Node, name: str, value: Node) -> None:
        self.definitions.append(
            self._file.make(node, name, "class" if value.type == "class" else "function", body_of=value)
        )

    def _add_variables(self, node: Node, outer: Node) -> None:
        declarators = [child for child in node.named_children if child.type == "variable_declarator"]
        if len(declarators) == 1:
            self._file.outer[node.start_byte] = outer
        for place, declarator in enumerate(declarators):
            value = declarator.child_by_field_name("value")
            bare = unwrapped(value)
            pattern = declarator.child_by_field_name("name")
            if pattern is None or (bare is not None and bare.type in CALLABLE):
                continue
            at = outer if len(declarators) == 1 else declarator
            documented_at = outer.start_byte if place == 0 else None
            holds = pattern.type == "identifier" and value is not None
            for name in self._pattern_names(pattern):
                self.definitions.append(
                    self._file.make(
                        at, name, "variable", value=value, holds=holds, documented_at=documented_at
                    )
                )

    def _pattern_names(self, pattern: Node) -> list[str]:
        if pattern.type in NAMED_PATTERNS:
            return [self._file.text(pattern)]
        if pattern.type in PATTERN_FIELDS:
            inner = pattern.child_by_field_name(PATTERN_FIELDS[pattern.type])
            return [] if inner is None else self._pattern_names(inner)
        if pattern.type not in PATTERNS:
            return []
        return [name for child in pattern.named_children for name in self._pattern_names(child)]

    def _read_expression(self, node: Node, outer: Node) -> None:
        first = node.named_child(0) if node.named_child_count else None
        if first is not None and first.type == "internal_module":
            self._read_declaration(first, outer)
        elif first is not None and first.type == "assignment_expression":
            self._read_assignment(first)

    def _read_assignment(self, node: Node) -> None:
        """`module.exports = …` and `exports.name = …`, also chained; other targets are not variables of the module."""
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if right is not None and right.type == "assignment_expression":
            self._read_assignment(right)
        if left is None or right is None or left.type != "member_expression":
            return
        target = self._file.text(left)
        if right.type in CALLABLE or not target.startswith(("exports.", "module.exports")):
            return
        name = target_of(target, "")[1]
        if target != "module.exports" or right.type not in {"identifier", "assignment_expression"}:
            self.definitions.append(
                self._file.make(
                    node, name, "variable", value=right, holds=right.type != "assignment_expression"
                )
            )

    def _read_ambient(self, node: Node, outer: Node) -> None:
        """`declare …`; for `declare global { … }`, what is inside."""
        for child in node.named_children:
            if child.type == "statement_block":
                self.definitions.append(
                    self._file.make(outer, "global", "variable", body_of=node, holds=True)
                )
                self._walk_body(child)
            else:
                self._read_declaration(child, outer)

    def _add_namespace(self, node: Node, outer: Node) -> None:
        owner, _, name = self._file.name(node, "name").rpartition(".")
        self.definitions.append(
            self._file.make(outer, name, "variable", owner=owner, body_of=node, holds=True)
        )
        body = node.child_by_field_name("body")
        if body is not None:
            self._walk_body(body)
