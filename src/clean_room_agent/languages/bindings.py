"""What the definitions of one file bind, and how they are written down in the file's interface for other files."""

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from tree_sitter import Node

from clean_room_agent.languages.interface import MAX_LENGTH, Written
from clean_room_agent.languages.nesting import Nested
from clean_room_agent.languages.regions import FUNCTIONS, Regions
from clean_room_agent.languages.scopes import UNKNOWN, Bound, Scopes

Definitions = dict[str, Written]
"""By qualified name."""


class Bindings(ABC):
    """What a file binds: its scopes, and members, return values and imports. A language fills it from captured nodes."""

    scopes: Scopes

    def __init__(self, nested: Nested, text: str, regions: Regions) -> None:
        self.nested = nested
        self.text = text
        self.regions = regions
        self.keys: Sequence[str] = nested.names
        """Symbol -> what it is known by in the interface."""
        self.members: dict[str, dict[str, list[Bound]]] = defaultdict(dict)
        """Key of a class, an interface or a type -> member that is no symbol -> what it holds."""
        self.variables: dict[int, Bound] = {}
        """Variable -> its type, or what it is first set to."""
        self.returned: dict[int, list[Bound]] = defaultdict(list)
        """Function -> what its return statements give."""
        self.imports: dict[str, list[tuple[str, str]]] = {}
        """Name at module level -> each (module as written, name there or "") that may bind it."""
        self.stars: list[str] = []
        self.declared: set[int] = set()
        """Where names stand that declare something and use nothing."""
        self._symbols: dict[tuple[int, str], int] = {}
        """Scope and name -> symbol."""

    @abstractmethod
    def described(self, place: int) -> tuple[str, str | list[str]]:
        """The kind of a symbol, and its bases or the expression for what it holds or returns (see `interface.Written`)."""

    @abstractmethod
    def replaces(self, entry: Written, before: Written) -> bool:
        """Whether `entry`, which comes later, is meant rather than `before` by their common name."""

    def is_hidden(self, place: int) -> bool:
        """Whether the symbol cannot be reached from other files, although no function is around it."""
        return False

    def keys_in(self, place: int) -> Iterator[tuple[str, Written]]:
        """The members that a symbol has without any definition of their own, by their qualified names."""
        yield from ()

    def string(self, node: Node) -> str:
        """The node's text."""
        return self.text[node.start_byte : node.end_byte]

    def bind_import(self, name: str, module: str, there: str) -> None:
        """Bind a name of the module to what an import takes."""
        bound = self.imports.setdefault(name, [])
        if (module, there) not in bound:
            bound.append((module, there))

    def bind_name(self, scope: int, name: str, start: int, bound: Bound | None = UNKNOWN) -> None:
        """Bind the name, written at byte `start`, in the scope."""
        self.declared.add(start)
        place = self._symbols.get((scope, name))
        if place is None:
            self.scopes.bind(scope, name, bound)
        elif bound is not None and self.nested.kinds[place] == "variable":
            self.variables.setdefault(place, bound)

    def bind_member(self, owner: str, name: str, bound: Bound) -> None:
        """Add what a member of the class `owner`, which is an expression, is set to."""
        if owner:
            self.members[owner[1:].rstrip(";@")].setdefault(name, []).append(bound)

    def add_returns(self, captures: Mapping[str, Sequence[Node]]) -> None:
        """Note what the return statements of each function give."""
        for node in captures.get("use.return", ()):
            scope = self.regions.at(node.start_byte)[1]
            if self.regions.symbols[scope] >= 0:
                self.returned[self.regions.symbols[scope]].append(Bound(node, scope=scope))

    def definitions(self) -> tuple[Definitions, Definitions]:
        """First the definitions that are visible to other files, then those inside functions."""
        kinds, parents = self.nested.kinds, self.nested.parents
        counts, seen = Counter(self.keys), Counter[str]()
        reachable: Definitions = {}
        inner: Definitions = {}
        local: set[int] = set()
        for place, key in enumerate(self.keys):
            parent = parents[place]
            if (parent >= 0 and (parent in local or kinds[parent] in FUNCTIONS)) or self.is_hidden(place):
                local.add(place)
            into = inner if place in local else reachable
            kind, types = self.described(place)
            seen[key] += 1
            entry: Written = (place, kind, types) if types else (place, kind)
            if counts[key] > 1:
                entry = (place, kind, types, f"{seen[key]}/{counts[key]}")
            before = into.get(key)
            if before is None or self.replaces(entry, before):
                into[key] = entry
            for name, held in self.keys_in(place):
                into.setdefault(name, held)
        for owner, members in self.members.items():
            into = inner if owner in inner else reachable
            for member, bound in members.items():
                _add_member(into, f"{owner}.{member}", fit(self.scopes.agreed(bound)))
        return reachable, inner

    def result_of(self, returned: Sequence[Bound], receiver: str) -> str:
        """What a function gives, by what its return statements do; `receiver` is the expression for its own object."""
        found = self.scopes.agreed(returned)
        if not found or found == receiver:
            return "~" if found else ""
        return found if found.endswith("?") else f"{found}%"


def _add_member(into: Definitions, name: str, types: str) -> None:
    existing = into.get(name)
    if existing is None:
        into[name] = (-1, "v", types) if types else (-1, "v")
    elif types and existing[1:] == ("v",):
        into[name] = (existing[0], "v", types)


def fit(expression: str) -> str:
    """The expression; "" if it is too long to be followed."""
    return expression if len(expression) <= MAX_LENGTH else ""
