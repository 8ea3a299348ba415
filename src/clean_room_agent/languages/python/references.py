"""Reads one parsed Python file: its interface for other files, and the names that each symbol uses.

The text is the file decoded as latin-1, so that its indexes are byte offsets.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter

from tree_sitter import Node

from clean_room_agent.languages.bindings import Bindings, fit
from clean_room_agent.languages.interface import STAR, FileNames, Written, write_interface, write_uses
from clean_room_agent.languages.latin1 import as_bytes, as_latin1, import_as_bytes, real_name
from clean_room_agent.languages.nesting import Nested
from clean_room_agent.languages.parsed import RawImport
from clean_room_agent.languages.regions import FUNCTIONS, MODULE_SCOPE, Regions
from clean_room_agent.languages.scopes import UNKNOWN, Bound, Scopes
from clean_room_agent.languages.uses import BASE, DECORATOR, Uses, WrittenUse

QUERY = """
(function_definition body: (_) @use.scope)
(class_definition body: (_) @use.scope)
(identifier) @use.name
[(function_definition name: (_) @use.own) (class_definition name: (_) @use.own)
 (attribute attribute: (_) @use.own) (keyword_argument name: (_) @use.own)]
(function_definition parameters: (parameters) @use.parameters)
(function_definition return_type: (_) @use.result)
(_ type: (type) @use.type)
(lambda_parameters [(identifier) @use.local (_ name: (identifier) @use.local) (_ . (identifier) @use.local)])
(assignment) @use.assignment
(augmented_assignment left: (identifier) @use.pattern)
(for_statement left: (_) @use.pattern)
(for_in_clause left: (_) @use.pattern)
(case_pattern) @use.pattern
(as_pattern) @use.as
(named_expression) @use.walrus
[(global_statement) (nonlocal_statement)] @use.outer
(return_statement (_) @use.return)
(decorator (_) @use.decorator)
(class_definition superclasses: (argument_list) @use.bases)
(attribute object: [(call) (subscript) (parenthesized_expression)]) @use.chain
"""
START = attrgetter("start_byte")
LETTER = r"A-Za-z_\x80-\xff"
WORD = rf"[{LETTER}][{LETTER}0-9]*+"
NAME = re.compile(WORD)
STEPS = rf"(?:\s*+\.\s*+{WORD})*+"
TARGET = re.compile(rf"(?<![.{LETTER}0-9])({WORD})(?!\s*[(\[.]|\s*=(?!=))")
"""A name in a pattern that is bound: no class with arguments, no attribute, no keyword."""
QUOTED = re.compile(r"[\"']([^\"'\n]+)[\"']")
GROWS = re.compile(r"^__all__\s*(?:\+=|\.)", re.MULTILINE)
PROPERTY = re.compile(r"@(?:[\w.]*\.)?(?:\w*property\w*|memoized_attribute|setter|getter|deleter)\b")
ON_CLASS = frozenset({"__new__", "__init_subclass__", "__class_getitem__"})
COMMON_MEMBERS = frozenset(
    name
    for kind in (str, bytes, list, dict, set, tuple, int, float, object, type, BaseException, property)
    for name in dir(kind)
)
"""Attributes of built-in types: a unique definition of such a name says nothing of what a use means."""
MAX_DEPTH = 8
"""Links of one chain that are followed."""
INNER = {
    "attribute": "object",
    "call": "function",
    "subscript": "value",
    "assignment": "right",
    "await": "",
    "parenthesized_expression": "",
}
"""Nodes that are followed, and the field that holds what they begin with; "": the value is that of the only child."""
BUILTIN_NAMES = "Any None bool bytes complex dict float int list object set str tuple"
BUILTIN_TYPES = frozenset(BUILTIN_NAMES.split())
WRAPPERS = frozenset(
    {"Optional", "Union", "ClassVar", "Final", "Required", "NotRequired", "ReadOnly", "Awaitable"}
)
"""What is written around a type and says nothing of its members."""


def read_names(
    captures: Mapping[str, Sequence[Node]], source: bytes, nested: Nested, imports: Sequence[RawImport]
) -> FileNames:
    """Turn what `QUERY` captured in a file into its interface and uses."""
    text = source.decode("latin-1")
    if not source.isascii():
        nested, imports = as_bytes(nested), [import_as_bytes(one) for one in imports]
    binds = PythonBindings(captures, nested, imports, text)
    reachable, inner = binds.definitions()
    exported = None if binds.exported and GROWS.search(text) else binds.exported
    known = None if binds.stars else frozenset([*reachable, *binds.imports])
    uses = PythonUses(binds, captures).read(known)
    taken = [(one.target, one.names, one.kind) for one in imports]
    return FileNames(
        real_name(write_interface(reachable, binds.imports, list(dict.fromkeys(binds.stars)), exported)),
        real_name(write_uses(inner, taken, uses)),
    )


class PythonScopes(Scopes):
    """A class's names are seen in its own body alone."""

    neutral = frozenset({"None", "NotImplemented", "..."})

    def __init__(self, nested: Nested, regions: Regions, text: str) -> None:
        outer = list(regions.parents)
        for scope in range(1, len(outer)):
            while outer[scope] > MODULE_SCOPE and _scope_kind(nested, regions, outer[scope]) not in FUNCTIONS:
                outer[scope] = outer[outer[scope]]
        super().__init__(regions, text, outer)
        self._nested = nested

    def value(self, node: Node) -> str:
        """See `Scopes.value`."""
        return of_value(node, self._text)

    def type(self, node: Node) -> str:
        """See `Scopes.type`."""
        return as_latin1(of_annotation(real_name(self._text[node.start_byte : node.end_byte])))

    def head(self, name: str, scope: int) -> str | None:
        """`super` means the bases of the class whose method is around the scope."""
        while name == "super" and scope >= 0:
            if _scope_kind(self._nested, self._regions, scope) == "method":
                own = self._nested.parents[self._regions.symbols[scope]]
                return f"={self._nested.names[own]};!"
            scope = self._regions.parents[scope]
        return self.meaning(name, scope) if scope >= 0 else ""


def _scope_kind(nested: Nested, regions: Regions, scope: int) -> str:
    return nested.kinds[regions.symbols[scope]] if regions.symbols[scope] >= 0 else ""


class PythonBindings(Bindings):
    """What a Python file binds."""

    def __init__(
        self, captures: Mapping[str, Sequence[Node]], nested: Nested, imports: Sequence[RawImport], text: str
    ) -> None:
        super().__init__(nested, text, Regions(nested, captures.get("use.scope", ())))
        self.scopes = PythonScopes(nested, self.regions, text)
        self.exported: list[str] | None = None
        self.bases: dict[int, list[Node]] = {}
        """Class -> what it is derived from, without keywords."""
        self.receivers: dict[int, str] = {}
        """Scope of a method -> its first parameter, unless it is static."""
        self.assigned: set[int] = set()
        """Where attributes begin that are assigned to."""
        self._results: dict[int, Node] = {}
        """Function -> its return annotation."""
        for place, one in enumerate(nested.definitions):
            scope = self.regions.around[place]
            self._symbols[scope, one.name] = place
            if scope != MODULE_SCOPE:
                self.scopes.bind(scope, one.name, Bound(text=f"={nested.names[place]};"))
        for imported in imports:
            self._bind_import_names(imported)
        for name, read in (
            ("use.result", self._note_return_annotation),
            ("use.parameters", self._bind_parameters),
            ("use.assignment", self._bind_assignment),
            ("use.pattern", self._bind_pattern),
            ("use.local", self._bind_local),
            ("use.as", self._bind_alias),
            ("use.walrus", self._bind_walrus),
            ("use.outer", self._unbind_outer_names),
            ("use.bases", self._note_base_classes),
            ("import", self._imported_names),
            ("from", self._imported_names),
        ):
            for node in sorted(captures.get(name, ()), key=START):
                place, scope = self.regions.at(node.start_byte)
                if place >= 0:
                    read(node, place, scope)
        self.declared.update(node.start_byte for node in captures.get("use.own", ()))
        self.add_returns(captures)
        self.scopes.finish()

    def decorators(self, place: int) -> str:
        """The decorators of a symbol, as they are written."""
        one = self.nested.definitions[place]
        if not self.text.startswith("@", one.start):
            return ""
        return self.text[one.start : self.text.find(one.signature[: len(one.name) + 4], one.start)]

    def described(self, place: int) -> tuple[str, str | list[str]]:
        """See `Bindings.described`."""
        kind, scope = self.nested.kinds[place], self.regions.around[place]
        if kind == "class":
            return "c", list(
                filter(None, (self._base_class(one, scope) for one in self.bases.get(place, ())))
            )
        if kind in FUNCTIONS:
            shown = "p" if PROPERTY.search(self.decorators(place)) else "f"
            return shown, fit(self._return_type(place))
        bound = self.variables.get(place)
        return "v", "" if bound is None else fit(self.scopes.expression(bound))

    def replaces(self, entry: Written, before: Written) -> bool:
        """The last one that is no overload is meant."""
        return "overload" not in self.decorators(entry[0])

    def _base_class(self, node: Node, scope: int) -> str:
        while node.type in {"subscript", "call"} and node.named_children:
            node = node.named_children[0]
        written = of_value(node, self.text)
        return self.scopes.canonical(written, scope) if written else ""

    def _return_type(self, place: int) -> str:
        scope = self.regions.own[place]
        receiver = self.receivers.get(scope, "")
        annotation = self._results.get(place)
        if annotation is None:
            own = self.scopes.meaning(receiver, scope) if receiver else None
            return self.result_of(self.returned.get(place, []), own or "")
        return self.scopes.expression(Bound(annotation, is_type=True, scope=self.regions.around[place]))

    def _bind_import_names(self, one: RawImport) -> None:
        scope = self.regions.at(one.start)[1]
        for name, there, target in _names_bound_by(one):
            if there == STAR:
                self.stars.append(target)
            elif scope == MODULE_SCOPE:
                self.bind_import(name, target, there)
            else:
                self.scopes.bind(scope, name, Bound(text=f"#{target};{there};"))

    def _imported_names(self, node: Node, _place: int, _scope: int) -> None:
        names = NAME.finditer(self.text, node.start_byte, node.end_byte)
        self.declared.update(name.start() for name in names)

    def _note_return_annotation(self, node: Node, place: int, scope: int) -> None:
        self._results[place] = node

    def _bind_parameters(self, node: Node, place: int, scope: int) -> None:
        inner = self.regions.own[place]
        parameters = [one for one in node.named_children if one.type != "comment"] if inner >= 0 else []
        is_method = self.nested.kinds[place] == "method" and "@staticmethod" not in self.decorators(place)
        for number, parameter in enumerate(parameters):
            name = parameter.child_by_field_name("name") or parameter
            while name.named_child_count:
                name = name.named_children[0]
            typed = parameter.child_by_field_name("type")
            written = self.string(name)
            if number == 0 and is_method and parameter.type != "list_splat_pattern":
                self._note_receiver(written, place, inner, typed)
                bound = Bound(text=self._receiver_expression(written, place))
            elif typed is not None and not self.text.startswith("*", parameter.start_byte):
                bound = Bound(typed, is_type=True, scope=scope)
            else:
                bound = UNKNOWN
            self.declared.add(name.start_byte)
            self.scopes.bind(inner, written, bound)

    def _note_receiver(self, name: str, place: int, scope: int, typed: Node | None) -> None:
        """Note a method's first parameter; a method that is said to give its type gives the object back."""
        self.receivers[scope] = name
        result = self._results.get(place)
        if result is not None and typed is not None and self.string(result) == self.string(typed):
            del self._results[place]
            self.returned[place] = [Bound(text=self._receiver_expression(name, place))]

    def _receiver_expression(self, name: str, place: int) -> str:
        """The expression for a method's first parameter: the class, or an object of it."""
        nested = self.nested
        is_class = nested.definitions[place].name in ON_CLASS or name in {"cls", "mcs"}
        is_class = is_class or "@classmethod" in self.decorators(place)
        return f"={nested.names[nested.parents[place]]};{'' if is_class else '@'}"

    def _bind_assignment(self, node: Node, place: int, scope: int) -> None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None:
            return
        typed = node.child_by_field_name("type")
        bound = Bound(typed or right, is_type=typed is not None, scope=scope)
        if left.type == "identifier":
            name = self.string(left)
            if name == "__all__" and scope == MODULE_SCOPE and right is not None:
                self.exported = QUOTED.findall(self.string(right))
            self.bind_name(scope, name, left.start_byte, bound)
        elif left.type == "attribute":
            self.assigned.add(left.start_byte)
            owner, _, attribute = self.string(left).partition(".")
            if owner == self.receivers.get(scope) and attribute.isidentifier():
                own = self.nested.parents[self.regions.symbols[scope]]
                self.bind_member(f"={self.nested.names[own]};", attribute, bound)
        else:
            self._bind_pattern(left, place, scope)

    def _bind_pattern(self, node: Node, place: int, scope: int) -> None:
        for target in TARGET.finditer(self.text, node.start_byte, node.end_byte):
            self.bind_name(scope, target[1], target.start(1))

    def _bind_local(self, node: Node, _place: int, scope: int) -> None:
        self.bind_name(scope, self.string(node), node.start_byte)

    def _bind_alias(self, node: Node, place: int, scope: int) -> None:
        alias, around = node.child_by_field_name("alias"), node.parent
        if alias is None or not alias.named_child_count:
            return
        name = alias.named_children[0]
        if name.type != "identifier":
            self._bind_pattern(alias, place, scope)
            return
        value = node.named_children[0]
        is_error = around is not None and around.type == "except_clause"
        bound = Bound(value, steps=":" if is_error else ".__enter__()", scope=scope)
        self.bind_name(scope, self.string(name), name.start_byte, bound)

    def _bind_walrus(self, node: Node, place: int, scope: int) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is not None and value is not None:
            self.bind_name(scope, self.string(name), name.start_byte, Bound(value, scope=scope))

    def _unbind_outer_names(self, node: Node, place: int, scope: int) -> None:
        for name in node.named_children:
            self.declared.add(name.start_byte)
            self.scopes.unbind(scope, self.string(name))

    def _note_base_classes(self, node: Node, place: int, scope: int) -> None:
        self.bases[place] = [
            one for one in node.named_children if one.type in {"identifier", "attribute", "subscript", "call"}
        ]


def _names_bound_by(one: RawImport) -> Iterator[tuple[str, str, str]]:
    """(name here, name there or "" for the module itself, module as written) for each name the import binds."""
    if one.names:
        for alias, name in zip(one.aliases or one.names, one.names, strict=True):
            yield alias, name, one.target
    elif one.aliases:
        yield one.aliases[0], "", one.target
    else:
        top = one.target.partition(".")[0]
        yield top, "", top


class PythonUses(Uses):
    """Names in Python."""

    chain = re.compile(rf"(super\s*+\([^()]*+\)|{WORD})({STEPS})(\()?+")
    following = re.compile(rf"({STEPS})(\()?+")
    member_field = "attribute"
    common = COMMON_MEMBERS

    def __init__(self, binds: PythonBindings, captures: Mapping[str, Sequence[Node]]) -> None:
        super().__init__(captures, binds)
        self._binds = binds
        self._receivers = frozenset(binds.receivers.values())

    def marks(self) -> dict[int, str]:
        """Of decorators, and of bases that are no results of calls."""
        marks = {node.start_byte: DECORATOR for node in self._captures.get("use.decorator", ())}
        bases = (base for found in self._binds.bases.values() for base in found if base.type != "call")
        return marks | {base.start_byte: BASE for base in bases}

    def parts(self, chain: re.Match[str]) -> tuple[str, str, str]:
        """What is assigned to is not used; an attribute that is, is one of what is."""
        head, steps, call = chain.groups()
        if chain.start() in self._binds.assigned:
            steps = steps.rpartition(".")[0]
            head = head if steps or head not in self._receivers else ""
        return "super" if head.startswith("super") else head, steps, call or ""

    def is_receiver(self, name: str) -> bool:
        """See `Uses.is_receiver`."""
        return name in self._receivers

    def written(self) -> Iterator[WrittenUse]:
        """Names, and those of types in strings."""
        yield from super().written()
        for node in [*self._captures.get("use.type", ()), *self._captures.get("use.result", ())]:
            start, end = node.start_byte, node.end_byte
            place, scope = self._regions.at(start)
            annotation = self._text[start:end]
            if place < 0 or "Literal" in annotation:
                continue
            for quoted in QUOTED.finditer(annotation):
                for chain in self.chain.finditer(self._text, start + quoted.start(1), start + quoted.end(1)):
                    yield chain.start(), place, scope, chain


@lru_cache(maxsize=4096)
def of_annotation(text: str) -> str:
    """The expression for a value with this annotation."""
    if "\\" in text:
        return ""  # Python would warn of escapes that it does not know
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    return _of_type(tree)


def _of_type(tree: ast.expr) -> str:
    if isinstance(tree, ast.Constant) and isinstance(tree.value, str):
        return of_annotation(tree.value)
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.BitOr):
        return _one_of(tree.left, tree.right)
    if isinstance(tree, ast.Subscript):
        return _of_generic(tree)
    name = _dotted_name(tree)
    if name.rpartition(".")[2] == "Self":
        return "~"
    return f"{name}:" if name and name not in BUILTIN_TYPES else ""


def _of_generic(tree: ast.Subscript) -> str:
    name = _dotted_name(tree.value)
    last = name.rpartition(".")[2]
    given = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
    if last in WRAPPERS:
        return _one_of(*given)
    if last == "Annotated":
        return _of_type(given[0])
    if last in {"Type", "type"}:
        return _one_of(*given).removesuffix(":")
    return f"{name}:" if name and name not in BUILTIN_TYPES else ""


def _one_of(*options: ast.expr) -> str:
    """The expression that all options except None share; "" if they differ."""
    found = {_of_type(one) for one in options if not (isinstance(one, ast.Constant) and one.value is None)}
    return found.pop() if len(found) == 1 else ""


def _dotted_name(tree: ast.expr) -> str:
    """A name with its attributes; "" for anything else."""
    if isinstance(tree, ast.Attribute):
        before = _dotted_name(tree.value)
        return before and f"{before}.{tree.attr}"
    return tree.id if isinstance(tree, ast.Name) else ""


def of_value(node: Node, text: str, depth: int = MAX_DEPTH) -> str:
    """The expression for a value; names in it are as written."""
    kind = node.type
    if kind == "identifier":
        return text[node.start_byte : node.end_byte]
    if depth == 0 or kind not in INNER:
        return ""
    field = INNER[kind]
    inner = node.child_by_field_name(field) if field else node.named_child(0)
    before = "" if inner is None else of_value(inner, text, depth - 1)
    if not before or kind in {"assignment", "await", "parenthesized_expression"}:
        return before
    if kind == "attribute":
        name = node.child_by_field_name("attribute")
        return "" if name is None else f"{before}.{text[name.start_byte : name.end_byte]}"
    if kind == "call":
        return before if before == "super" else f"{before}()"
    return f"{before}[]"
