"""Collects what a Python file binds: names by scope, attributes by class, return values by function."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from operator import itemgetter

from tree_sitter import Node

from clean_room_agent.languages.nesting import Nested, innermost
from clean_room_agent.languages.python.expressions import CHAIN, expression_at, of_annotation, of_node
from clean_room_agent.languages.python.name_scan import LETTER, WORD
from clean_room_agent.languages.python.parameters import read_parameters, read_signature
from clean_room_agent.languages.python.scopes import FUNCTIONS, Bound, Scopes

QUERY = """
(assignment right: (assignment) @use.chained)
(ERROR (assignment) @use.chained)
(augmented_assignment left: (identifier) @use.bind)
(for_statement left: (_) @use.bind)
(for_in_clause left: (_) @use.bind)
(as_pattern_target) @use.as
(named_expression name: (identifier) @use.walrus)
(lambda_parameters) @use.lambda
(global_statement) @use.outer
(nonlocal_statement) @use.outer
(case_pattern) @use.bind
(return_statement (_) @use.return)
"""
ASSIGNMENTS = ("assignment", "use.chained")
"""The language's own query captures nearly all of them."""
CAPTURES = (
    *ASSIGNMENTS,
    "use.bind",
    "use.as",
    "use.walrus",
    "use.lambda",
    "use.outer",
    "use.return",
    "use.chain",
)
PLAIN = re.compile(rf"({WORD})\s*+=(?!=)\s*+")
OWNED = re.compile(rf"({WORD})(?:\.({WORD}))?+\s*+=(?!=)\s*+")
TARGETS = re.compile(rf"(?<![.{LETTER}0-9])({WORD})(?!\s*[(\[.]|\s*=(?!=))")
STRINGS = re.compile(r"[\"']([^\"']*)[\"']")
STATIC = "@staticmethod"
VALUES = frozenset({"variable", "type_alias"})
ON_CLASS = frozenset({"__new__", "__init_subclass__", "__class_getitem__"})


class Binds:
    """What a file binds: its scopes, and attributes, return values and exports."""

    def __init__(self, nested: Nested, text: str) -> None:
        self.nested = nested
        self.text = text
        self.scopes = Scopes(nested, text)
        self.attributes: dict[int, dict[str, list[Bound]]] = defaultdict(lambda: defaultdict(list))
        """Class -> attribute assigned through `self` -> what is assigned."""
        self.variables: dict[int, tuple[str, int]] = {}
        """Variable -> what it is first assigned or annotated with."""
        self.returned: dict[int, list[str]] = defaultdict(list)
        """Function -> what its return statements give, where it has no return annotation."""
        self.annotated: dict[int, str] = {}
        """Function -> its return annotation's expression, for those that have one."""
        self.exported: list[str] | None = None
        self.chains: dict[int, dict[int, Node]] = defaultdict(dict)
        """Place -> attributes of calls, the longest that begins at each byte."""
        self.self_names: dict[int, str] = {}
        """Method -> its first parameter, unless it is static."""
        self.annotations: dict[int, set[str]] = defaultdict(set)
        """Place -> its annotations as they are written: before `=` they look like what is assigned to."""


def read_binds(captures: Mapping[str, Sequence[Node]], nested: Nested, text: str) -> Binds:
    """Collect everything that the captured nodes bind, except imports inside functions."""
    binds = Binds(nested, text)
    for place, kind in enumerate(nested.kinds):
        if kind in FUNCTIONS:
            _parameters(binds, place)
    kinds, parents = nested.kinds, nested.parents
    match, bind = OWNED.match, binds.scopes.bind
    events = [(node.start_byte, name, node) for name in CAPTURES for node in captures.get(name, ())]
    events.sort(key=itemgetter(0))
    places = innermost((event[0] for event in events), nested)
    for (start, name, node), place in zip(events, places, strict=True):
        if name not in ASSIGNMENTS:
            if place >= 0:
                _bind(binds, name, node, place)
        elif place >= 0 and kinds[place] in FUNCTIONS and (owned := match(text, start)) is not None:
            first, attribute = owned.groups()
            if attribute is None:
                bind(place, first, (owned.end(), node))
            elif binds.self_names.get(place) == first:
                expression = expression_at(text, owned.end(), node.end_byte, node)
                binds.attributes[parents[place]][attribute].append((expression, place))
        else:
            _assignment(binds, node, start, place)
    return binds


def _bind(binds: Binds, name: str, node: Node, place: int) -> None:
    if name == "use.chain":
        known = binds.chains[place].get(node.start_byte)
        if known is None or known.end_byte < node.end_byte:
            binds.chains[place][node.start_byte] = node
        return
    if name == "use.return":
        if place not in binds.annotated:
            binds.returned[place].append(expression_at(binds.text, node.start_byte, node.end_byte, node))
        return
    text = binds.text[node.start_byte : node.end_byte]
    if name == "use.lambda":
        for parameter, _ in read_parameters(text):
            binds.scopes.bind(place, parameter)
    elif name == "use.outer":
        binds.scopes.declare_outer(place, CHAIN.findall(text)[1:])
    elif name == "use.bind":
        for target in TARGETS.findall(text):
            binds.scopes.bind(place, target)
    else:
        _named(binds, name, node, text, place)


def _named(binds: Binds, name: str, node: Node, text: str, place: int) -> None:
    """Bind the target of `:=` or of `as`."""
    parent = node.parent
    if parent is None or not CHAIN.fullmatch(text) or "." in text:
        for target in TARGETS.findall(text):
            binds.scopes.bind(place, target)
        return
    value = parent.named_children[0] if name == "use.as" else parent.child_by_field_name("value")
    expression = "" if value is None else of_node(value, binds.text)
    if expression and name == "use.as":
        clause = parent.parent
        expression += ":" if clause is not None and clause.type == "except_clause" else ".__enter__()"
    binds.scopes.bind(place, text, expression)


def _parameters(binds: Binds, place: int) -> None:
    nested, scopes = binds.nested, binds.scopes
    one, parent = nested.definitions[place], nested.parents[place]
    signature = read_signature(one.signature, one.name)
    if signature.returns:
        binds.annotations[place].add(signature.returns)
        binds.annotated[place] = of_annotation(signature.returns)
    parameters = signature.parameters
    if nested.kinds[place] == "method" and parameters:
        decorated = binds.text.startswith("@", one.start)
        head = binds.text[one.start : binds.text.find(one.signature[:12], one.start)] if decorated else ""
        if STATIC not in head:
            first = parameters[0][0]
            binds.self_names[place] = first
            if signature.returns and signature.returns == parameters[0][1]:
                binds.annotated[place] = "~"
            on_class = "@classmethod" in head or one.name in ON_CLASS or first in {"cls", "mcs"}
            scopes.bind(place, first, f"={nested.names[parent]};{'' if on_class else '@'}")
            parameters = parameters[1:]
    for name, annotation in parameters:
        if annotation:
            binds.annotations[place].add(annotation)
        scopes.bind(place, name, of_annotation(annotation) if annotation else "", parent)


def _assignment(binds: Binds, node: Node, start: int, place: int) -> None:
    text, end = binds.text, node.end_byte
    plain = PLAIN.match(text, start)
    if plain is not None:
        name, expression = plain[1], expression_at(text, plain.end(), end, node)
    else:
        left = node.child_by_field_name("left")
        if left is None:
            return
        if left.type not in {"identifier", "attribute"}:
            targets = TARGETS.findall(text[start : left.end_byte])
            for scope in _bound_together(binds.nested, place):
                for target in targets:
                    binds.scopes.bind(scope, target)
            return
        name = text[start : left.end_byte]
        annotation = node.child_by_field_name("type")
        right = node.child_by_field_name("right")
        if annotation is not None:
            written = text[annotation.start_byte : annotation.end_byte]
            binds.annotations[place].add(written)
            expression = of_annotation(written)
        else:
            expression = "" if right is None else expression_at(text, right.start_byte, end, node)
    _assign(binds, name, expression, start, place)


def _bound_together(nested: Nested, place: int) -> list[int]:
    """The variables assigned by the statement whose last one is `place`; just `place` if there is only one."""
    places = [place] if place >= 0 else []
    while place > 0 and nested.definitions[place - 1].start == nested.definitions[place].start:
        place -= 1
        places.append(place)
    return places


def _assign(binds: Binds, name: str, expression: str, start: int, place: int) -> None:
    nested = binds.nested
    first, _, attribute = name.partition(".")
    if attribute:
        function = place
        if "." not in attribute and binds.self_names.get(function) == first:
            binds.attributes[nested.parents[function]][attribute].append((expression, function))
        return
    if name == "__all__" and place >= 0 and nested.parents[place] < 0:
        stop = nested.definitions[place].end
        binds.exported = STRINGS.findall(binds.text[start:stop])
    for variable in _bound_together(nested, place):
        if nested.kinds[variable] in VALUES and nested.definitions[variable].name == name:
            binds.variables.setdefault(variable, (expression, nested.parents[variable]))
            return
    if place >= 0:
        binds.scopes.bind(place, name, expression)
