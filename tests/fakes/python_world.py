"""A repository of Python files in memory, as the resolver of references sees it."""

from collections import defaultdict
from collections.abc import Mapping

from tree_sitter import Query, QueryCursor

from clean_room_agent import syntax
from clean_room_agent.indexer.imports.python import ModuleRef, PythonModules
from clean_room_agent.indexer.languages.python import PythonReader
from clean_room_agent.indexer.nesting import Nested, nest
from clean_room_agent.indexer.references.interface import FileNames, Interface, parse_interface
from clean_room_agent.indexer.references.reading import QUERY, read_names
from clean_room_agent.indexer.references.resolve import Resolved, resolve_file

CALLABLE = frozenset({"function", "method", "class"})
READER = PythonReader()
MERGED = Query(syntax.language("python"), READER.query("python") + QUERY)


def read_file(source: str) -> tuple[Nested, FileNames]:
    """The file's symbols and names."""
    data = source.encode()
    root = syntax.parse(data, "python").root_node
    captures = QueryCursor(MERGED).captures(root)
    parsed = READER.read(root, captures, data)
    nested = nest(parsed.definitions)
    return nested, read_names(captures, data, nested, parsed.imports)


class PythonWorld:
    """All files of a repository, from their sources."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self.nested: dict[str, Nested] = {}
        self.names: dict[str, FileNames] = {}
        for path in sorted(sources):
            self.nested[path], self.names[path] = read_file(sources[path])
        self._modules = PythonModules(self.names)
        self._interfaces: dict[str, Interface] = {}
        self._named: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for path, nested in self.nested.items():
            for place, kind in enumerate(nested.kinds):
                if kind in CALLABLE:
                    self._named[nested.definitions[place].name].append((path, place))

    def find(self, source: str, target: str) -> ModuleRef | None:
        """As the real one."""
        return self._modules.find(source, target)

    def child(self, ref: ModuleRef, name: str) -> ModuleRef | None:
        """As the real one."""
        return self._modules.child(ref, name)

    def interface(self, path: str) -> Interface | None:
        """As the real one."""
        if path not in self._interfaces and path in self.names:
            self._interfaces[path] = parse_interface(self.names[path].interface)
        return self._interfaces.get(path)

    def unique(self, name: str) -> tuple[str, int] | None:
        """As the real one."""
        found = self._named.get(name, ())
        return found[0] if len(found) == 1 else None

    def count(self, name: str) -> int:
        """How many callables have this name."""
        return len(self._named.get(name, ()))

    def resolve(self, path: str) -> Resolved:
        """The file's references."""
        return resolve_file(path, self.names[path], self)

    def references(self, path: str) -> list[str]:
        """The file's references as `caller -> [path:]callee kind confidence`, sorted."""
        said = []
        for caller, callee_path, callee, kind, confidence in self.resolve(path).references:
            where = "" if callee_path == path else f"{callee_path}:"
            names = self.nested[path].names[caller], self.nested[callee_path].names[callee]
            said.append(f"{names[0]} -> {where}{names[1]} {kind} {confidence:g}")
        return sorted(said)
