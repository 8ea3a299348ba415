"""What a JavaScript or TypeScript file binds: names, members, return values, imports, exports."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter

from tree_sitter import Node

from clean_room_agent.languages.bindings import Bindings, Definitions, fit
from clean_room_agent.languages.ecmascript.expressions import BETWEEN, LITERAL, MAX_DEPTH, STEPS, WORD
from clean_room_agent.languages.ecmascript.modules import ALL, read_export, read_import
from clean_room_agent.languages.ecmascript.nodes import NAMELESS
from clean_room_agent.languages.ecmascript.scopes import CLASSES, ScriptScopes, base_nodes, is_scope_of
from clean_room_agent.languages.interface import DEFAULT, WHOLE, Written
from clean_room_agent.languages.nesting import Nested
from clean_room_agent.languages.regions import FUNCTIONS, MODULE_SCOPE, Regions
from clean_room_agent.languages.scopes import UNKNOWN, Bound, bound_node

ON_THIS = re.compile(rf"this\.(#?{WORD})")
ON_EXPORTS = re.compile(rf"(?:module\.)?exports\.({WORD})")
DECLARATOR = re.compile(rf"({WORD})\s*+!?([:=])?+")
PARAMETER = re.compile(
    rf"((?:(?:public|private|protected|readonly|override)\s++)*+)({WORD})\s*+\??\s*+([:=])?+"
)
UNBOUND = CLASSES | {"interface_declaration"}
"""Scopes whose symbols are members, not names."""
OPEN = UNBOUND | {"internal_module", "module"}
"""Scopes whose symbols can be reached from elsewhere."""
PLAIN = frozenset({"identifier", "shorthand_property_identifier_pattern", "type_identifier"})
INNER = {"assignment_pattern": "left", "object_assignment_pattern": "left", "pair_pattern": "value"}
START = attrgetter("start_byte")
DOTTED = re.compile(WORD + STEPS)
ACCESSOR = re.compile(
    r"(?:(?:static|public|private|protected|override|abstract|declare)\s+)*[gs]et\s+[\w$#'\"\[]"
)
REQUIRED = re.compile(rf"#[^;]*;;(?:\.{WORD})?")
"""What `require` gives, or one member of it."""
QUOTES = "'\""
HELD_INSIDE = frozenset({"as_expression", "satisfies_expression", "parenthesized_expression"})
MAX_KEYS = 200
"""Of larger objects the keys are data."""
PRIORITY = {"f": 4, "c": 3, "e": 3, "a": 2, "p": 2, "v": 1}
"""Which of several symbols of one name is meant."""
PROTOTYPE = re.compile(rf"(?<![\w$.])({WORD})\.prototype\.{WORD}\s*=")


class ScriptBindings(Bindings):
    """What a file binds: besides what is common, its exports."""

    scopes: ScriptScopes

    def __init__(self, captures: Mapping[str, Sequence[Node]], nested: Nested, text: str) -> None:
        super().__init__(nested, text, Regions(nested, captures.get("use.scope", ()), is_scope_of))
        self.constructors = frozenset(PROTOTYPE.findall(text)) if ".prototype." in text else frozenset[str]()
        """Names of functions that are used as classes."""
        self.keys = self._symbol_keys()
        """The qualified name, or, if the symbol is hidden, that and its place."""
        self.scopes = ScriptScopes(nested, self.regions, text, self.keys, self.constructors)
        self.exports: dict[str, tuple[str, str]] = {}
        """Name that others ask for -> module ("": this file) and name there."""
        self.aliases: dict[str, Bound] = {}
        """Names at module level that are no symbols."""
        self._type_aliases = {
            self.regions.at(node.start_byte)[0]: node for node in captures.get("type_alias", ())
        }
        self._ends = sorted(
            (one.end, place)
            for place, one in enumerate(nested.definitions)
            if nested.parents[place] < 0 and not one.owner
        )
        """The module's symbols by the byte after their last."""
        self._read_captures(captures)

    def is_hidden(self, place: int) -> bool:
        """Whether the symbol is local to a function, or a method of an object that is not held by a variable."""
        nested, parent = self.nested, self.nested.parents[place]
        if nested.definitions[place].owner:
            return False
        if nested.kinds[place] == "method":
            return parent < 0 or nested.kinds[parent] in FUNCTIONS
        node = self.regions.nodes[self.regions.around[place]]
        return node is not None and node.type not in OPEN

    def _symbol_keys(self) -> list[str]:
        nested = self.nested
        keys: list[str] = []
        for place, (name, parent) in enumerate(zip(nested.names, nested.parents, strict=True)):
            key = keys[parent] + name[len(nested.names[parent]) :] if parent >= 0 else name
            keys.append(f"{key}#{place}" if self.is_hidden(place) else key)
        return keys

    def _read_captures(self, captures: Mapping[str, Sequence[Node]]) -> None:
        # Captures come in arbitrary order, but the first binding of a name counts, and so does the order of keys in
        # the interface.
        self._bind_symbols()
        at, relevant = self.regions.at, self.regions.with_symbols()
        for name, read in (
            ("use.import", self._bind_imports),
            ("use.export", self._add_exports),
            ("use.default", self._bind_default_export),
            ("use.parameter", self._bind_parameter),
            ("use.type_parameter", self._bind_type_parameter),
            ("use.pattern", self._bind_untyped_pattern),
            ("use.declarator", self._bind_declarator),
            ("field", self._bind_field),
            ("use.property", self._bind_property),
            ("use.assign", self._bind_assignment),
        ):
            for node in sorted(captures.get(name, ()), key=START):
                place, scope = at(node.start_byte)
                if place >= 0 or scope in relevant:
                    read(node, place, scope)
        self.declared.update(node.start_byte for node in captures.get("use.own", ()))
        self.add_returns(captures)
        self.scopes.finish()

    def _bind_symbols(self) -> None:
        nested, regions = self.nested, self.regions
        for place, one in enumerate(nested.definitions):
            scope = regions.around[place]
            node = regions.nodes[scope]
            if one.owner or nested.kinds[place] == "method" or (node is not None and node.type in UNBOUND):
                continue
            self._symbols[scope, one.name] = place
            if scope != MODULE_SCOPE:
                self.scopes.bind(scope, one.name, Bound(text=self.scopes.symbol(self.keys[place])))

    def _pattern_names(
        self, node: Node, steps: str | None = "", depth: int = MAX_DEPTH
    ) -> Iterator[tuple[str, int, str | None]]:
        """Yield each name a pattern binds, its first byte, and the steps to its value (None if unknown)."""
        kind = node.type
        if depth == 0:
            return
        if kind in PLAIN:
            yield self.string(node), node.start_byte, steps
        elif kind in INNER:
            inner, key = node.child_by_field_name(INNER[kind]), node.child_by_field_name("key")
            if key is not None and steps is not None:
                steps = f"{steps}.{self.string(key)}" if key.type == "property_identifier" else None
            if inner is not None:
                yield from self._pattern_names(inner, steps, depth - 1)
        elif kind in {"object_pattern", "array_pattern", "rest_pattern"}:
            for child in node.named_children:
                into = steps if kind == "object_pattern" and child.type != "rest_pattern" else None
                left = child.child_by_field_name("left") if child.type in INNER else None
                plain = left or child
                if into is not None and plain.type == "shorthand_property_identifier_pattern":
                    into = f"{into}.{self.string(plain)}"
                yield from self._pattern_names(child, into, depth - 1)

    def _bind_pattern(self, pattern: Node, scope: int, typed: Node | None, value: Node | None) -> None:
        node = typed or value
        for name, start, steps in self._pattern_names(pattern):
            known = node is not None and steps is not None
            bound = Bound(node, "", typed is not None, steps or "", scope) if known else UNKNOWN
            self.bind_name(scope, name, start, bound)

    def _bind_declarator(self, node: Node, _place: int, scope: int) -> None:
        start = node.start_byte
        plain = DECLARATOR.match(self.text, start)
        if plain is not None:
            bound = _of_field(node, plain[2], "value", scope) if plain[2] else None
            self.bind_name(scope, plain[1], start, bound)
            return
        pattern = node.child_by_field_name("name")
        if pattern is not None:
            self._bind_pattern(
                pattern, scope, node.child_by_field_name("type"), node.child_by_field_name("value")
            )

    def _bind_untyped_pattern(self, node: Node, _place: int, scope: int) -> None:
        self._bind_pattern(node, scope, None, None)

    def _bind_parameter(self, node: Node, _place: int, scope: int) -> None:
        plain = PARAMETER.match(self.text, node.start_byte)
        value = "right" if node.type == "assignment_pattern" else "value"
        if plain is not None and (node.type != "identifier" or not plain[1]):
            bound = _of_field(node, plain[3] if node.type != "identifier" else "", value, scope)
            self.bind_name(scope, plain[2], plain.start(2), bound)
            if plain[1]:
                self.bind_member(self.scopes.this(scope), plain[2], bound)
            return
        pattern = node.child_by_field_name("pattern") or node.child_by_field_name("left") or node
        self._bind_pattern(pattern, scope, node.child_by_field_name("type"), node.child_by_field_name(value))

    def _bind_type_parameter(self, node: Node, _place: int, scope: int) -> None:
        name, constraint = node.child_by_field_name("name"), node.child_by_field_name("constraint")
        if name is not None:
            self.declared.add(name.start_byte)
            first = constraint.named_children[0] if constraint and constraint.named_child_count else None
            bound = (
                UNKNOWN if first is None else Bound(first, is_type=True, scope=self.regions.parents[scope])
            )
            self.scopes.bind(scope, self.string(name), bound)

    def _bind_field(self, node: Node, place: int, scope: int) -> None:
        typed, value = node.child_by_field_name("type"), node.child_by_field_name("value")
        if place >= 0 and (typed is not None or value is not None):
            self.variables[place] = Bound(typed or value, is_type=typed is not None, scope=scope)

    def _bind_property(self, node: Node, place: int, scope: int) -> None:
        name, typed = node.child_by_field_name("name"), node.child_by_field_name("type")
        if place >= 0 and name is not None:
            owner = self.scopes.symbol(self.keys[place])
            self.bind_member(owner, self.string(name).strip("'\""), Bound(typed, is_type=True, scope=scope))

    def _bind_assignment(self, node: Node, place: int, scope: int) -> None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            return
        if left.type == "identifier":
            self.scopes.rebind(scope, self.string(left), Bound(right, scope=scope))
        elif left.type == "member_expression":
            target = self.string(left)
            member = ON_THIS.fullmatch(target)
            if member is not None:
                own = self.scopes.this(scope)
                if own.endswith("@"):
                    self.bind_member(own, member[1], Bound(right, scope=scope))
            elif scope == MODULE_SCOPE and target.startswith(("exports.", "module.exports")):
                self._export_commonjs(target, place, right)

    def _export_commonjs(self, target: str, place: int, right: Node) -> None:
        """CommonJS: `module.exports = …`, `exports.name = …`."""
        while right.type == "assignment_expression" and (inner := right.child_by_field_name("right")):
            right = inner
        named = ON_EXPORTS.fullmatch(target)
        if named is not None:
            self.exports.setdefault(named[1], ("", named[1]))
            if place >= 0 and self.nested.definitions[place].name == named[1]:
                self.variables.setdefault(place, Bound(right))
            return
        if target != "module.exports":
            return
        required = LITERAL.search(self.string(right)) if self.string(right).startswith("require") else None
        if right.type == "identifier":
            self.exports[WHOLE] = "", self.string(right)
        elif required is not None and right.type == "call_expression":
            self.exports[WHOLE] = required[1], ""
        elif place >= 0:
            self.exports[WHOLE] = "", self.nested.names[place]
            self.variables.setdefault(place, Bound(right))

    def _bind_imports(self, node: Node, _place: int, _scope: int) -> None:
        for one in read_import(self.string(node)):
            self.bind_import(one.name, one.module, one.there)

    def _add_exports(self, node: Node, _place: int, scope: int) -> None:
        if scope != MODULE_SCOPE:
            return
        start, end = node.start_byte, node.end_byte
        is_default = any(child.type == DEFAULT for child in node.children[:4])
        if node.child_by_field_name("declaration") is not None:
            self._export_declared(start, end, is_default=is_default)
            return
        found = read_export(self.string(node))
        if not found and is_default:
            self._export_declared(start, end, is_default=True)
        for one in found:
            if one.name == ALL:
                self.stars.append(one.module)
            elif "." in one.there:
                self.aliases[one.name] = Bound(text=one.there)
                self.exports[one.name] = "", one.name
            else:
                self.exports[one.name] = one.module, one.there

    def _export_declared(self, start: int, end: int, *, is_default: bool) -> None:
        """Export the symbols that the statement declares."""
        for number in range(bisect_right(self._ends, (start, len(self._ends))), len(self._ends)):
            one = self.nested.definitions[self._ends[number][1]]
            if one.end > end:
                break
            self.exports[DEFAULT if is_default else one.name] = "", one.name

    def _bind_default_export(self, node: Node, place: int, scope: int) -> None:
        if place >= 0 and self.nested.kinds[place] == "variable":
            self.variables.setdefault(place, Bound(node, scope=scope))

    def definitions(self) -> tuple[Definitions, Definitions]:
        """Besides the definitions themselves, what is exported under other names, and as members of the module."""
        reachable, inner = super().definitions()
        for name, alias in self.aliases.items():
            reachable.setdefault(name, (-1, "a", self.scopes.expression(alias)))
        module, whole = self.exports.get(WHOLE, ("", ""))
        if whole and not module:
            for name in sorted(self.exports.keys() - {WHOLE, whole}):
                reachable.setdefault(f"{whole}.{name}", (-1, "a", name))
        return reachable, inner

    def replaces(self, entry: Written, before: Written) -> bool:
        """The last of those that say most is meant."""
        return _entry_priority(before) <= _entry_priority(entry)

    def described(self, place: int) -> tuple[str, str | list[str]]:
        """See `Bindings.described`."""
        nested = self.nested
        kind = nested.kinds[place]
        if kind == "enum":
            return "e", ""
        if kind in {"class", "interface"}:
            return "c", self._base_classes(place)
        if kind == "type_alias":
            return self._alias_entry(place)
        if kind in FUNCTIONS:
            if nested.names[place] in self.constructors:
                return "c", []
            is_accessor = kind == "method" and ACCESSOR.match(self.text, nested.definitions[place].start)
            return "p" if is_accessor else "f", fit(self._return_type(place))
        bound = self.variables.get(place)
        types = "" if bound is None else fit(self.scopes.expression(bound))
        return "a" if REQUIRED.fullmatch(types) else "v", types

    def _base_classes(self, place: int) -> list[str]:
        scope = self.regions.own[place]
        node = self.regions.nodes[scope] if scope > 0 else None
        if node is None:
            return []
        written = [self._dotted_name(base) for base in base_nodes(node)]
        found = [self.scopes.canonical(one, scope) for one in written if one]
        return [base for base in found if fit(base)]

    def _dotted_name(self, node: Node) -> str:
        chain = DOTTED.match(self.text, node.start_byte)
        return "" if chain is None else BETWEEN.sub("", chain[0])

    def _alias_entry(self, place: int) -> tuple[str, str | list[str]]:
        """An object type is a class without a name; any other alias means what it refers to."""
        node = self._type_aliases.get(place)
        value = None if node is None else node.child_by_field_name("value")
        if value is None:
            return "v", ""
        scope = max(self.regions.own[place], 0)
        parts = value.named_children if value.type == "intersection_type" else [value]
        if any(part.type == "object_type" for part in parts) or len(parts) > 1:
            bases = [self.scopes.expression(Bound(part, is_type=True, scope=scope)) for part in parts]
            return "c", [base.removesuffix(":") for base in bases if fit(base)]
        return "v", fit(self.scopes.expression(Bound(value, is_type=True, scope=scope))).removesuffix(":")

    def _return_type(self, place: int) -> str:
        scope = self.regions.own[place]
        node = self.regions.nodes[scope] if scope > 0 else None
        if node is None:
            return ""
        annotation = node.child_by_field_name("return_type")
        if annotation is not None:
            return self.scopes.expression(Bound(annotation, is_type=True, scope=scope))
        body = node.child_by_field_name("body")
        returned = self.returned.get(place, [])
        if body is not None and body.type != "statement_block":
            returned = [Bound(body, scope=scope)]
        return self.result_of([one for one in returned if one.node is not None], self.scopes.this(scope))

    def keys_in(self, place: int) -> Iterator[tuple[str, Written]]:
        """The keys of a variable's object."""
        bound = self.variables.get(place)
        node = None if bound is None or bound.is_type or bound.steps else bound_node(bound)
        while node is not None and node.type in HELD_INSIDE:
            node = node.named_children[0] if node.named_child_count else None
        while node is not None and node.type == "assignment_expression":
            node = node.child_by_field_name("right")
        if bound is None or node is None or node.type != "object" or node.named_child_count > MAX_KEYS:
            return
        owner = self.keys[place]
        for child in node.named_children:
            value = child.child_by_field_name("value") if child.type == "pair" else child
            key = child.child_by_field_name("key") if child.type == "pair" else child
            if key is None or value is None or child.type not in {"pair", "shorthand_property_identifier"}:
                continue
            name = f"{owner}.{self.string(key).strip(QUOTES)}"
            if key.type == "computed_property_name":
                continue
            if value.type in {"identifier", "shorthand_property_identifier"}:
                meant = self.scopes.canonical(self.string(value), bound.scope)
                yield name, (-1, "a", meant) if meant else (-1, "v")
            elif value.type not in NAMELESS:
                types = fit(self.scopes.expression(Bound(value, scope=bound.scope)))
                yield name, (-1, "v", types) if types else (-1, "v")


def _entry_priority(entry: Written) -> tuple[int, bool]:
    return PRIORITY[entry[1]], len(entry) > 2 and bool(entry[2])


def _of_field(node: Node, sign: str | None, value: str, scope: int) -> Bound:
    """What a name is bound to, judging by the sign that follows it: `:` a type, `=` a value."""
    if sign == ":":
        return Bound(node, "type", is_type=True, scope=scope)
    return Bound(node, value, scope=scope) if sign else UNKNOWN
