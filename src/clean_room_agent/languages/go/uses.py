"""What a Go file offers to others, and the names that its declarations use, as `languages.scopes` writes them.

A worked example:

    func (c *Cart) Total() int {        c is `Cart:`, an object of the type
        sum := 0
        for _, item := range c.items {  item is `Cart:.items[]:`, an object of what the slice holds
            sum += item.Price()         the token `Cart:.items[]:|.Price(`
        }
        return money.Round(sum)         `money` is imported: the token `money.Round(`
    }

A slice, an array or a map is written as the type of its elements, without `:`; so `[]:` is one of them.
"""

from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar

from tree_sitter import Node

from clean_room_agent.languages.go.declarations import (
    Declaration,
    declarations,
    members_of,
    names_of,
    receiver_of,
    type_of,
)
from clean_room_agent.languages.go.packages import OWN_PACKAGE, package_names
from clean_room_agent.languages.interface import MAX_LENGTH, FileNames, Written, write_interface, write_uses
from clean_room_agent.languages.nesting import Nested
from clean_room_agent.languages.parsed import ParsedFile

MAX_DEPTH = 150
"""Nodes inside one another that are followed."""
PREDECLARED_NAMES = (
    "_ any append bool byte cap clear close comparable complex complex128 complex64 copy delete error false float32 "
    "float64 imag int int16 int32 int64 int8 iota len make max min new nil panic print println real recover rune "
    "string true uint uint16 uint32 uint64 uint8 uintptr"
)
PREDECLARED = frozenset(PREDECLARED_NAMES.split())
SAME = frozenset({"pointer_type", "parenthesized_type"})
ELEMENTS = frozenset({"slice_type", "array_type", "map_type", "implicit_length_array_type"})
SCOPES = frozenset(
    {"block", "if_statement", "for_statement", "expression_case", "default_case", "communication_case"}
    | {"expression_switch_statement", "select_statement"}
)
UNKNOWN = "?"

Scope = ChainMap[str, str]
"""Name of a local -> the expression for its value, "" if that is unknown."""


def read_names(root: Node, source: bytes, nested: Nested, parsed: ParsedFile) -> FileNames:
    """The interface and the uses of a file."""
    uses = _Uses(root, source, nested, parsed)
    stars = [OWN_PACKAGE, *(one.target for one in parsed.imports if one.aliases == (".",))]
    interface = write_interface(uses.definitions, uses.imports, stars, None)
    taken = [(one.target, sorted(uses.taken.get(one.target, ())), one.kind) for one in parsed.imports]
    tokens = [(place, " ".join(sorted(found))) for place, found in sorted(uses.tokens.items()) if found]
    return FileNames(interface, write_uses({}, taken, tokens))


class _Uses:
    """Walks over the declarations of a file, with the locals of each function."""

    def __init__(self, root: Node, source: bytes, nested: Nested, parsed: ParsedFile) -> None:
        self._source = source
        self.definitions: dict[str, Written] = {}
        self.imports: dict[str, list[tuple[str, str]]] = {}
        self.taken: dict[str, set[str]] = {}
        """Target of an import -> what is used of it."""
        self.tokens: dict[int, set[str]] = {}
        self._found: set[str] = set()
        for one in parsed.imports:
            for name in one.aliases or package_names(one.target):
                self.imports.setdefault(name, []).append((one.target, ""))
        places = {(one.start, one.name): place for place, one in enumerate(nested.definitions)}
        for declared in declarations(root):
            start, own = declared.outer.start_byte, -1
            for node in reversed(names_of(declared.node)):
                own = places.get((start, self._node_text(node)), -1)
                if own >= 0:
                    self._define_name(declared, nested.names[own], own)
            for member in members_of(declared.node):
                self._add_member(member, nested, places)
            self._found = self.tokens.setdefault(own, set())
            self._visit_declaration(declared.node)
        self.tokens.pop(-1, None)

    def _define_name(self, declared: Declaration, name: str, place: int) -> None:
        node = declared.node
        if not declared.word:
            self._add_entry(name, place, "f", self._result_type(node))
        elif declared.word == "type":
            inner = type_of(node)
            if node.type == "type_alias":
                self._add_entry(
                    name, place, "a", "" if inner is None else self._type_expression(inner).removesuffix(":")
                )
                return
            self.definitions[name] = (place, "c", list(self._embedded_types(inner)))
            for field, types in self._struct_fields(inner):
                self._add_entry(f"{name}.{field}", -1, "v", types)
        else:
            self._add_entry(name, place, "v", self._declared_type(node, Scope()))

    def _add_entry(self, name: str, place: int, kind: str, types: str) -> None:
        fits = types and len(types) <= MAX_LENGTH
        self.definitions.setdefault(name, (place, kind, types) if fits else (place, kind))

    def _add_member(self, member: Node, nested: Nested, places: dict[tuple[int, str], int]) -> None:
        place = places.get((member.start_byte, self._field_text(member, "name")), -1)
        if place >= 0:
            self._add_entry(nested.names[place], place, "f", self._result_type(member))

    def _result_type(self, function: Node) -> str:
        """The type of what it returns first."""
        result = function.child_by_field_name("result")
        if result is not None and result.type == "parameter_list":
            first = result.named_children[0] if result.named_child_count else None
            result = None if first is None else first.child_by_field_name("type")
        return "" if result is None else self._type_expression(result)

    def _embedded_types(self, inner: Node | None) -> Iterator[str]:
        """The types whose members a struct or an interface has as its own."""
        fields = [] if inner is None else inner.named_children
        if inner is not None and inner.type == "struct_type":
            fields = [one for held in fields for one in held.named_children]
        for field in fields:
            if field.type == "type_elem" and field.named_child_count == 1:
                found = self._type_expression(field.named_children[0])
            elif field.type == "field_declaration" and field.child_by_field_name("name") is None:
                found = self._type_expression(field.child_by_field_name("type"))
            else:
                continue
            if found:
                yield found.removesuffix(":")

    def _struct_fields(self, inner: Node | None) -> Iterator[tuple[str, str]]:
        """(name, type) of the fields of a struct; what is embedded has the name of its type."""
        if inner is None or inner.type != "struct_type":
            return
        for field in (one for held in inner.named_children for one in held.named_children):
            if field.type == "field_declaration":
                types = self._type_expression(field.child_by_field_name("type"))
                names = [self._node_text(name) for name in names_of(field)]
                for name in names or filter(None, [types.removesuffix(":").rpartition(".")[2]]):
                    yield name, types

    def _type_expression(self, node: Node | None) -> str:
        """The expression for a value of a type."""
        kind = "" if node is None else node.type
        if (
            node is None
            or kind not in {"type_identifier", "qualified_type", "generic_type"} | SAME | ELEMENTS
        ):
            return ""
        if kind == "generic_type":
            return self._type_expression(node.child_by_field_name("type"))
        if kind in SAME:
            return self._type_expression(node.named_children[-1] if node.named_child_count else None)
        if kind in ELEMENTS:
            element = self._type_expression(
                node.child_by_field_name("element") or node.child_by_field_name("value")
            )
            return element.removesuffix(":") if element.endswith(":") else ""
        name = self._node_text(node)
        return "" if name in PREDECLARED else f"{name}:"

    def _value_expression(self, node: Node | None, scope: Scope, depth: int = MAX_DEPTH) -> str:
        """The expression for a value, in terms of what the package knows; "" if unknown."""
        read = None if node is None or depth == 0 else self._values.get(node.type)
        found = "" if node is None or read is None else read(self, node, scope, depth - 1)
        return found if len(found) <= MAX_LENGTH else ""

    def _identifier_value(self, node: Node, scope: Scope, _depth: int) -> str:
        name = self._node_text(node)
        return scope.get(name, "" if name in PREDECLARED else name)

    def _selector_value(self, node: Node, scope: Scope, depth: int) -> str:
        before = self._value_expression(node.child_by_field_name("operand"), scope, depth)
        return before and f"{before}.{self._field_text(node, 'field')}"

    def _call_value(self, node: Node, scope: Scope, depth: int) -> str:
        called, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if self._field_text(node, "function") in {"new", "make"}:
            return self._type_expression(
                arguments.named_child(0) if arguments and arguments.named_child_count else None
            )
        before = self._value_expression(called, scope, depth)
        return before and f"{before}()"

    def _typed_value(self, node: Node, _scope: Scope, _depth: int) -> str:
        return self._type_expression(node.child_by_field_name("type"))

    def _indexed_value(self, node: Node, scope: Scope, depth: int) -> str:
        before = self._value_expression(node.child_by_field_name("operand"), scope, depth)
        return before and f"{before}[]:"

    def _operand_value(self, node: Node, scope: Scope, depth: int) -> str:
        inner = node.child_by_field_name("operand") or (
            node.named_child(0) if node.named_child_count else None
        )
        return self._value_expression(inner, scope, depth)

    def _declared_type(self, spec: Node, scope: Scope) -> str:
        written = spec.child_by_field_name("type")
        value = spec.child_by_field_name("value")
        if written is not None or value is None:
            return self._type_expression(written)
        return self._value_expression(value.named_children[0] if value.named_child_count else None, scope)

    def _visit_declaration(self, node: Node) -> None:
        """Note what a declaration of the top level uses."""
        scope = Scope()
        if node.type == "method_declaration":
            self._found.add(receiver_of(node) or "_")
            receiver = node.child_by_field_name("receiver")
            for parameter in [] if receiver is None else receiver.named_children:
                for name in names_of(parameter):
                    scope[self._node_text(name)] = f"{receiver_of(node)}:"
        own = {name.start_byte for name in names_of(node)}
        for child in node.named_children:
            if child.start_byte not in own and child != node.child_by_field_name("receiver"):
                self._visit_node(child, scope, MAX_DEPTH)
        self._found.discard("_")

    def _visit_node(self, node: Node | None, scope: Scope, depth: int, *, called: bool = False) -> None:
        """Note what a node uses; what it declares becomes a local of `scope`."""
        read = None if node is None or depth == 0 else self._visits.get(node.type)
        if node is None or depth == 0:
            return
        if called and node.type in {"identifier", "selector_expression"}:
            (self._visit_selector if node.type == "selector_expression" else self._visit_name)(
                node, scope, depth - 1, "("
            )
        elif read is not None:
            read(self, node, scope, depth - 1)
        else:
            self._visit_children(node, scope.new_child() if node.type in SCOPES else scope, depth - 1)

    def _visit_name(self, node: Node, scope: Scope, _depth: int, call: str = "") -> None:
        name = self._node_text(node)
        if name not in scope and name not in PREDECLARED:
            self._found.add(f"{name}{call}")

    def _visit_qualified_type(self, node: Node, _scope: Scope, _depth: int) -> None:
        self._add_taken(self._field_text(node, "package"), self._field_text(node, "name"))
        self._found.add(self._node_text(node))

    def _visit_call(self, node: Node, scope: Scope, depth: int) -> None:
        self._visit_node(node.child_by_field_name("function"), scope, depth, called=True)
        for child in node.named_children[1:]:
            self._visit_node(child, scope, depth)

    def _visit_keyed_element(self, node: Node, scope: Scope, depth: int) -> None:
        """A key that is a name is taken for that of a field."""
        key, *values = node.named_children
        if key.named_child_count and key.named_children[0].type != "identifier":
            values.append(key)
        for child in values:
            self._visit_node(child, scope, depth)

    def _visit_closure(self, node: Node, scope: Scope, depth: int) -> None:
        self._visit_children(node, scope.new_child(), depth)

    def _visit_binding(self, node: Node, scope: Scope, depth: int) -> None:
        self._visit_children(node, scope, depth)
        self._bind_names(node, scope)

    def _visit_parameter(self, node: Node, scope: Scope, depth: int) -> None:
        types = (
            self._type_expression(node.child_by_field_name("type"))
            if node.type == "parameter_declaration"
            else ""
        )
        self._visit_node(node.child_by_field_name("type"), scope, depth)
        scope.update(dict.fromkeys(map(self._node_text, names_of(node)), types))

    def _visit_children(self, node: Node, scope: Scope, depth: int) -> None:
        bound = {name.start_byte for name in self._bound_names(node)}
        for child in node.named_children:
            if child.start_byte not in bound:
                self._visit_node(child, scope, depth)

    def _bound_names(self, node: Node) -> Sequence[Node]:
        """The names that a statement gives to values."""
        if node.type in {"var_spec", "const_spec"}:
            return names_of(node)
        left = node.child_by_field_name("left")
        declares = node.type == "short_var_declaration" or any(child.type == ":=" for child in node.children)
        return left.named_children if left is not None and declares else ()

    def _bind_names(self, node: Node, scope: Scope) -> None:
        names = [self._node_text(name) for name in self._bound_names(node)]
        right = node.child_by_field_name("right") or node.child_by_field_name("value")
        if node.type == "range_clause":
            held = self._value_expression(right, scope)
            values = ["", f"{held}[]:" if held else ""]
        elif node.type in {"var_spec", "const_spec"} and node.child_by_field_name("type") is not None:
            values = [self._type_expression(node.child_by_field_name("type"))] * len(names)
        else:
            given = [] if right is None or node.type == "receive_statement" else right.named_children
            values = [self._value_expression(one, scope) for one in given]
        scope.update({name: values[at] if at < len(values) else "" for at, name in enumerate(names)})

    def _type_switch(self, node: Node, scope: Scope, depth: int) -> None:
        alias = node.child_by_field_name("alias")
        for child in (one for one in node.named_children if one != alias):
            inner = scope.new_child()
            if alias is not None:
                types = child.children_by_field_name("type")
                inner[self._node_text(alias)] = self._type_expression(types[0]) if len(types) == 1 else ""
            self._visit_children(child, inner, depth) if child.named_child_count else self._visit_node(
                child, inner, depth
            )

    def _visit_selector(self, node: Node, scope: Scope, depth: int, call: str = "") -> None:
        fields: list[str] = []
        operand: Node | None = node
        while operand is not None and operand.type == "selector_expression":
            fields.insert(0, self._field_text(operand, "field"))
            operand = operand.child_by_field_name("operand")
        steps = f".{'.'.join(fields)}{call}"
        if operand is not None and operand.type == "identifier":
            name = self._node_text(operand)
            if name not in scope:
                self._add_taken(name, fields[0])
                self._found.add(f"{name}{steps}")
            else:
                self._found.add(f"{scope[name] or UNKNOWN}|{steps}")
            return
        self._visit_node(operand, scope, depth)
        self._found.add(f"{self._value_expression(operand, scope) or UNKNOWN}|{steps}")

    def _add_taken(self, package: str, name: str) -> None:
        for target, _ in self.imports.get(package, ()):
            self.taken.setdefault(target, set()).add(name)

    def _field_text(self, node: Node, field: str) -> str:
        found = node.child_by_field_name(field)
        return "" if found is None else self._node_text(found)

    def _node_text(self, node: Node) -> str:
        return "".join(self._source[node.start_byte : node.end_byte].decode("utf-8", "replace").split())

    _values: ClassVar[Mapping[str, Callable[["_Uses", Node, Scope, int], str]]] = {
        "identifier": _identifier_value,
        "selector_expression": _selector_value,
        "call_expression": _call_value,
        **dict.fromkeys(
            ("composite_literal", "type_assertion_expression", "type_conversion_expression"), _typed_value
        ),
        "index_expression": _indexed_value,
        **dict.fromkeys(("unary_expression", "slice_expression", "parenthesized_expression"), _operand_value),
    }
    """How the expression for a value is read."""
    _visits: ClassVar[Mapping[str, Callable[["_Uses", Node, Scope, int], None]]] = {
        **dict.fromkeys(("identifier", "type_identifier"), _visit_name),
        "qualified_type": _visit_qualified_type,
        "selector_expression": _visit_selector,
        "call_expression": _visit_call,
        "keyed_element": _visit_keyed_element,
        "type_switch_statement": _type_switch,
        "func_literal": _visit_closure,
        **dict.fromkeys(
            ("short_var_declaration", "range_clause", "receive_statement", "var_spec", "const_spec"),
            _visit_binding,
        ),
        **dict.fromkeys(
            ("parameter_declaration", "variadic_parameter_declaration", "type_parameter_declaration"),
            _visit_parameter,
        ),
    }
    """What is noted of a node; of others, what is noted of their children."""
