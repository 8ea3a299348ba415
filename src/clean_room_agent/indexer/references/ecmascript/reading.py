"""One parsed JavaScript or TypeScript file as its interface and its uses."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from tree_sitter import Node

from clean_room_agent.indexer.nesting import Nested
from clean_room_agent.indexer.references.ecmascript.binding import WHOLE, Binds
from clean_room_agent.indexer.references.ecmascript.expressions import WORD, of_value
from clean_room_agent.indexer.references.ecmascript.regions import FUNCTIONS
from clean_room_agent.indexer.references.ecmascript.scopes import Bound
from clean_room_agent.indexer.references.expressions import MAX_LENGTH
from clean_room_agent.indexer.references.interface import ENCODE, FileNames, Written, write_interface
from clean_room_agent.indexer.references.latin import as_bytes, real_name

COMMON_QUERY = """
[(identifier) (shorthand_property_identifier) (this) (super)] @use.name
[(function_declaration) (generator_function_declaration) (function_expression) (generator_function)
 (arrow_function) (method_definition) (class_declaration) (class)] @use.scope
[(function_declaration name: (_) @use.own) (generator_function_declaration name: (_) @use.own)
 (function_expression name: (_) @use.own) (class_declaration name: (_) @use.own) (class name: (_) @use.own)]
(formal_parameters (_) @use.parameter)
(arrow_function parameter: (identifier) @use.pattern)
(catch_clause parameter: (_) @use.pattern)
(for_in_statement kind: _ left: (_) @use.pattern)
(variable_declarator) @use.declarator
(assignment_expression) @use.assign
(return_statement (_) @use.return)
(member_expression object: [(call_expression) (new_expression) (parenthesized_expression)
  (subscript_expression)]) @use.chain
(class_heritage) @use.bases
(import_statement) @use.import
(export_statement) @use.export
(export_statement value: (_) @use.default)
"""
JSX_QUERY = """
(jsx_opening_element name: (_) @use.element)
(jsx_self_closing_element name: (_) @use.element)
(jsx_closing_element name: (_) @use.own)
"""
TYPES_QUERY = """
(type_identifier) @use.name
[(abstract_class_declaration) (interface_declaration) (type_alias_declaration) (internal_module) (module)
 (function_signature) (method_signature) (abstract_method_signature) (function_type) (call_signature)
 (construct_signature) (constructor_type)] @use.scope
[(abstract_class_declaration name: (_) @use.own) (interface_declaration name: (_) @use.own)
 (type_alias_declaration name: (_) @use.own) (enum_declaration name: (_) @use.own)
 (function_signature name: (_) @use.own) (internal_module name: (_) @use.own)]
(type_parameter) @use.type_parameter
(infer_type (type_identifier) @use.pattern)
(mapped_type_clause name: (type_identifier) @use.pattern)
(interface_declaration body: (interface_body (property_signature) @use.property))
(type_alias_declaration value: (object_type (property_signature) @use.property))
(type_alias_declaration value: (intersection_type (object_type (property_signature) @use.property)))
(extends_type_clause) @use.bases
"""
STEPS = rf"(?:\s*+!?\s*+\??\.(?![.\d])\s*+#?{WORD})*+"
CALLED = r"(?P<call>\s*+!?\s*+(?:\?\.)?(?:<[^<>()=;]*+>)?\(|`)?+"
CHAIN = re.compile(rf"(?P<names>{WORD}{STEPS}){CALLED}")
FOLLOWING = re.compile(rf"(?P<names>{STEPS}){CALLED}")
NAMES = re.compile(rf"#?{WORD}")
CALLED_FIRST = re.compile(r"#[^;]*;;|[^#():?%@]*(?:\(\)|[:?%@])")
"""What an expression begins with that is more than names."""
ACCESSOR = re.compile(r"(?:(?:static|public|private|protected|override|abstract|declare)\s+)*[gs]et\s+[\w$#'\"\[]")
REQUIRED = re.compile(rf"#[^;]*;;(?:\.{WORD})?")
MEMBER = re.compile(rf"(.+)(\.#?{WORD})")
UNKNOWN = "?|"
ELEMENT = "/"
"""Marks the name of a JSX element: its component is called."""
MAX_KEYS = 200
"""Of larger objects the keys are data."""
PRIORITY = {"f": 4, "c": 3, "e": 3, "a": 2, "p": 2, "v": 1}
"""Which of several symbols of one name is meant."""


def query(grammar: str) -> str:
    """The query whose captures `read_names` reads, for a grammar of JavaScript or TypeScript."""
    types = "" if grammar == "javascript" else TYPES_QUERY
    return COMMON_QUERY + types + ("" if grammar == "typescript" else JSX_QUERY)


def read_names(captures: Mapping[str, Sequence[Node]], source: bytes, nested: Nested) -> FileNames:
    """The interface and the uses of the file, from what its `query` captured."""
    text = source.decode("latin-1")
    binds = Binds(captures, nested if source.isascii() else as_bytes(nested), text)
    reachable, inner = _definitions(binds, captures)
    uses = _Uses(binds, captures, frozenset([*reachable, *binds.imports])).read()
    interface = write_interface(reachable, binds.imports, list(dict.fromkeys(binds.stars)), binds.exports)
    return FileNames(real_name(interface), real_name(ENCODE([inner, [], uses])))


def _definitions(
    binds: Binds, captures: Mapping[str, Sequence[Node]]
) -> tuple[dict[str, Written], dict[str, Written]]:
    """What other files can reach by qualified name, and what stands inside functions."""
    nested = binds.nested
    nodes = {
        binds.regions.at(node.start_byte)[0]: node
        for capture in ("class", "type_alias", "interface")
        for node in captures.get(capture, ())
    }
    counts, seen = Counter(binds.keys), Counter[str]()
    reachable: dict[str, Written] = {}
    inner: dict[str, Written] = {}
    local: set[int] = set()
    for place, key in enumerate(binds.keys):
        parent = nested.parents[place]
        if parent >= 0 and (parent in local or nested.kinds[parent] in FUNCTIONS) or binds.is_local(place):
            local.add(place)
        into = inner if place in local else reachable
        kind, types = _described(binds, place, nodes.get(place))
        seen[key] += 1
        entry: Written = (place, kind, types) if types else (place, kind)
        if counts[key] > 1:
            entry = (place, kind, types, f"{seen[key]}/{counts[key]}")
        before = into.get(key)
        if before is None or _weight(before) <= _weight(entry):
            into[key] = entry
        _keys(binds, place, into)
    for name, members in binds.members.items():
        into = inner if name in inner else reachable
        for member, bound in members.items():
            _add_member(into, f"{name}.{member}", binds.scopes.agreed(bound))
    for name, alias in binds.aliases.items():
        reachable.setdefault(name, (-1, "a", binds.scopes.expression(alias)))
    module, whole = binds.exports.get(WHOLE, ("", ""))
    if whole and not module:
        for name in sorted(binds.exports.keys() - {WHOLE, whole}):
            reachable.setdefault(f"{whole}.{name}", (-1, "a", name))
    return reachable, inner


def _weight(entry: Written) -> tuple[int, bool]:
    return PRIORITY[entry[1]], len(entry) > 2 and bool(entry[2])


def _add_member(into: dict[str, Written], name: str, types: str) -> None:
    existing = into.get(name)
    if existing is None:
        into[name] = (-1, "v", types) if _fit(types) else (-1, "v")
    elif types and existing[1:] == ("v",):
        into[name] = (existing[0], "v", types)


def _fit(expression: str) -> str:
    return expression if len(expression) <= MAX_LENGTH else ""


def _described(binds: Binds, place: int, node: Node | None) -> tuple[str, str | list[str]]:
    """The kind of the definition, and its bases or the type of its value."""
    nested = binds.nested
    kind = nested.kinds[place]
    if kind == "enum":
        return "e", ""
    if kind in {"class", "interface"}:
        return "c", _bases(binds, place)
    if kind == "type_alias":
        return _alias(binds, place, node)
    if kind in FUNCTIONS:
        if nested.names[place] in binds.constructors:
            return "c", []
        is_accessor = kind == "method" and ACCESSOR.match(binds.text, nested.definitions[place].start)
        return "p" if is_accessor else "f", _fit(_returned(binds, place))
    bound = binds.variables.get(place)
    types = "" if bound is None else _fit(binds.scopes.expression(bound))
    return "a" if REQUIRED.fullmatch(types) else "v", types


def _bases(binds: Binds, place: int) -> list[str]:
    scope = binds.regions.own[place]
    node = binds.regions.nodes[scope] if scope > 0 else None
    if node is None:
        return []
    written = [_written(binds, base) for base in base_nodes(node)]
    found = [binds.scopes.canonical(one, scope) for one in written if one]
    return [base for base in found if _fit(base)]


def _written(binds: Binds, node: Node) -> str:
    chain = CHAIN.match(binds.text, node.start_byte)
    return "" if chain is None else ".".join(NAMES.findall(chain["names"]))


def base_nodes(node: Node) -> Iterator[Node]:
    """What a class or an interface extends and implements, in order."""
    for child in node.children:
        if child.type in {"class_heritage", "extends_type_clause"}:
            clauses = [one for one in child.named_children if one.type.endswith("_clause")] or [child]
            for clause in clauses:
                yield from (one for one in clause.named_children if one.type != "type_arguments")


def _alias(binds: Binds, place: int, node: Node | None) -> tuple[str, str | list[str]]:
    """A type that is an object's is a class without a name; one that stands for another leads there."""
    value = None if node is None else node.child_by_field_name("value")
    if value is None:
        return "v", ""
    scope = max(binds.regions.own[place], 0)
    parts = value.named_children if value.type == "intersection_type" else [value]
    if any(part.type == "object_type" for part in parts) or len(parts) > 1:
        bases = [binds.scopes.expression(Bound(part, is_type=True, scope=scope)) for part in parts]
        return "c", [base.removesuffix(":") for base in bases if _fit(base)]
    return "v", _fit(binds.scopes.expression(Bound(value, is_type=True, scope=scope))).removesuffix(":")


def _returned(binds: Binds, place: int) -> str:
    scope = binds.regions.own[place]
    node = binds.regions.nodes[scope] if scope > 0 else None
    if node is None:
        return ""
    annotation = node.child_by_field_name("return_type")
    if annotation is not None:
        return binds.scopes.expression(Bound(annotation, is_type=True, scope=scope))
    body = node.child_by_field_name("body")
    returned = binds.returned.get(place, [])
    if body is not None and body.type != "statement_block":
        returned = [Bound(body, scope=scope)]
    found = binds.scopes.agreed([one for one in returned if one.node is not None])
    if not found:
        return ""
    if found == binds.scopes.this(scope):
        return "~"
    return found if found.endswith("?") else f"{found}%"


def _keys(binds: Binds, place: int, into: dict[str, Written]) -> None:
    """The keys of an object that a variable is set to are its members."""
    bound = binds.variables.get(place)
    node = None if bound is None or bound.is_type or bound.steps else bound.node
    while node is not None and node.type in {"as_expression", "satisfies_expression", "parenthesized_expression"}:
        node = node.named_children[0] if node.named_child_count else None
    while node is not None and node.type == "assignment_expression":
        node = node.child_by_field_name("right")
    if bound is None or node is None or node.type != "object" or node.named_child_count > MAX_KEYS:
        return
    owner = binds.keys[place]
    for child in node.named_children:
        value = child.child_by_field_name("value") if child.type == "pair" else child
        key = child.child_by_field_name("key") if child.type == "pair" else child
        if key is None or value is None or child.type not in {"pair", "shorthand_property_identifier"}:
            continue
        name = f"{owner}.{binds.string(key).strip(_QUOTES)}"
        if name in into or key.type == "computed_property_name":
            continue
        if value.type in {"identifier", "shorthand_property_identifier"}:
            meant = binds.scopes.canonical(binds.string(value), bound.scope)
            into[name] = (-1, "a", meant) if meant else (-1, "v")
        elif value.type not in _FUNCTION_VALUES:
            types = _fit(binds.scopes.expression(Bound(value, scope=bound.scope)))
            into[name] = (-1, "v", types) if types else (-1, "v")


_QUOTES = "'\""
_FUNCTION_VALUES = frozenset({"arrow_function", "function_expression", "generator_function"})


class _Uses:
    """Each symbol's names as tokens that can be resolved without knowing its scope."""

    def __init__(
        self, binds: Binds, captures: Mapping[str, Sequence[Node]], module_names: frozenset[str]
    ) -> None:
        self._binds = binds
        self._captures = captures
        self._module_names = module_names
        self._marks = {node.start_byte: ELEMENT for node in captures.get("use.element", ())}
        """By first byte, those uses that are no plain names."""
        self._marks |= {node.start_byte + 1: "@" for node in captures.get("decorator", ())}
        for node in captures.get("use.bases", ()):
            if node.parent is not None:
                self._marks |= {base.start_byte: "<" for base in base_nodes(node.parent)}
        self._tokens: dict[int, set[str]] = {}

    def read(self) -> list[tuple[int, str]]:
        """Symbol's place and its tokens, separated by spaces, sorted."""
        binds, marks = self._binds, self._marks
        text, declared, match = binds.text, binds.declared, CHAIN.match
        pieces = binds.regions.pieces()
        place, scope, end = -1, 0, 0
        seen: dict[tuple[int, int], set[str]] = defaultdict(set)
        for start in sorted([node.start_byte for node in self._captures.get("use.name", ())]):
            while start >= end:
                place, scope, end = next(pieces)
            if place < 0 or start in declared:
                continue
            if text[start - 1] == "." and text[start - 2 : start] != "..":
                continue
            chain = match(text, start)
            if chain is None:
                continue
            mark = marks.get(start, "")
            written = mark + chain[0]
            if written not in seen[place, scope]:
                seen[place, scope].add(written)
                self._add(chain, place, scope, mark)
        self._chains()
        return [(place, " ".join(sorted(self._tokens[place]))) for place in sorted(self._tokens)]

    def _add(self, chain: re.Match[str], place: int, scope: int, mark: str) -> None:
        names = NAMES.findall(chain["names"])
        if mark == ELEMENT:
            if len(names) == 1 and names[0][0].islower():
                return  # the browser's
            token = self._token(names, scope, "", "(")
        else:
            token = self._token(names, scope, mark, "(" if chain["call"] and not mark else "")
        if token:
            self._tokens.setdefault(place, set()).add(token)

    def _token(self, names: Sequence[str], scope: int, mark: str, call: str) -> str:
        if names[0] == "exports" and len(names) > 1 and names[1] in self._module_names:
            names = names[1:]
        head, rest = names[0], names[1:]
        steps = "".join(f".{name}" for name in rest)
        if head == "super" and not rest:
            steps = ".constructor"
        meaning = self._binds.scopes.head(head, scope)
        if meaning is None:
            return f"{mark}{head}{steps}{call}" if head in self._module_names else ""
        if meaning and meaning[0] in "=#" and meaning[-1] == ";" and head != "this":
            return f"{mark}{meaning}{steps}{call}"
        if not steps:
            return self._called(meaning) if call else ""
        if meaning and len(meaning) < MAX_LENGTH:
            return f"{mark}{meaning}|{steps}{call}"
        return f"{mark}{UNKNOWN}{steps}{call}"

    def _called(self, meaning: str) -> str:
        """What a call of a local calls: a member that it was taken from, or the function that it is another name for."""
        taken = MEMBER.fullmatch(meaning)
        if taken is not None:
            return f"{taken[1]}|{taken[2]}("
        return f"{meaning}(" if meaning in self._module_names else ""

    def _chains(self) -> None:
        """What is asked of the results of calls, one after another."""
        binds = self._binds
        longest: dict[int, Node] = {}
        for node in self._captures.get("use.chain", ()):
            known = longest.get(node.start_byte)
            if known is None or known.end_byte < node.end_byte:
                longest[node.start_byte] = node
        for start, node in longest.items():
            place, scope = binds.regions.at(start)
            if place < 0:
                continue
            written = of_value(node, binds.text)
            split = CALLED_FIRST.match(written)
            known_head = binds.scopes.canonical(split[0], scope) if split else ""
            following = FOLLOWING.match(binds.text, node.end_byte)
            more = "" if following is None else "".join(f".{one}" for one in NAMES.findall(following["names"]))
            call = "(" if following is not None and following["call"] else ""
            if known_head and split:
                token = f"{known_head}|{written[split.end() :]}{more}{call}"
            else:
                name = node.child_by_field_name("property")
                token = "" if name is None else f"{UNKNOWN}.{binds.string(name)}{more}{call}"
            if token and " " not in token:
                self._tokens.setdefault(place, set()).add(token)
