"""Definitions of a JavaScript or TypeScript file, with types, for its interface."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from tree_sitter import Node

from clean_room_agent.languages.ecmascript.binding import Binds
from clean_room_agent.languages.ecmascript.expressions import BETWEEN, STEPS, WORD
from clean_room_agent.languages.ecmascript.regions import FUNCTIONS, base_nodes
from clean_room_agent.languages.ecmascript.scopes import Bound
from clean_room_agent.languages.interface import MAX_LENGTH, WHOLE, Written

DOTTED = re.compile(WORD + STEPS)
ACCESSOR = re.compile(
    r"(?:(?:static|public|private|protected|override|abstract|declare)\s+)*[gs]et\s+[\w$#'\"\[]"
)
REQUIRED = re.compile(rf"#[^;]*;;(?:\.{WORD})?")
"""What `require` gives, or one member of it."""
QUOTES = "'\""
FUNCTION_VALUES = frozenset({"arrow_function", "function_expression", "generator_function"})
MAX_KEYS = 200
"""Of larger objects the keys are data."""
PRIORITY = {"f": 4, "c": 3, "e": 3, "a": 2, "p": 2, "v": 1}
"""Which of several symbols of one name is meant."""


def read_definitions(
    binds: Binds, captures: Mapping[str, Sequence[Node]]
) -> tuple[dict[str, Written], dict[str, Written]]:
    """Return definitions by qualified name: first those visible to other files, then those inside functions."""
    nested = binds.nested
    nodes = {binds.regions.at(node.start_byte)[0]: node for node in captures.get("type_alias", ())}
    counts, seen = Counter(binds.keys), Counter[str]()
    reachable: dict[str, Written] = {}
    inner: dict[str, Written] = {}
    local: set[int] = set()
    for place, key in enumerate(binds.keys):
        parent = nested.parents[place]
        if (parent >= 0 and (parent in local or nested.kinds[parent] in FUNCTIONS)) or binds.is_hidden(place):
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
    chain = DOTTED.match(binds.text, node.start_byte)
    return "" if chain is None else BETWEEN.sub("", chain[0])


def _alias(binds: Binds, place: int, node: Node | None) -> tuple[str, str | list[str]]:
    """An object type is a class without a name; any other alias means what it refers to."""
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
    """Add the keys of a variable's object as its members."""
    bound = binds.variables.get(place)
    node = None if bound is None or bound.is_type or bound.steps else bound.node
    if node is not None and bound is not None and bound.field:
        node = node.child_by_field_name(bound.field)
    while node is not None and node.type in {
        "as_expression",
        "satisfies_expression",
        "parenthesized_expression",
    }:
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
        name = f"{owner}.{binds.string(key).strip(QUOTES)}"
        if name in into or key.type == "computed_property_name":
            continue
        if value.type in {"identifier", "shorthand_property_identifier"}:
            meant = binds.scopes.canonical(binds.string(value), bound.scope)
            into[name] = (-1, "a", meant) if meant else (-1, "v")
        elif value.type not in FUNCTION_VALUES:
            types = _fit(binds.scopes.expression(Bound(value, scope=bound.scope)))
            into[name] = (-1, "v", types) if types else (-1, "v")
