"""A repository of one language in memory, as the resolver of references sees it."""

from collections import defaultdict
from collections.abc import Collection, Mapping

from clean_room_agent import syntax
from clean_room_agent.indexer.extract import read_source
from clean_room_agent.indexer.references.evaluate import Evaluations
from clean_room_agent.indexer.references.resolve import Resolved, resolve_file
from clean_room_agent.languages.base import ModuleRef
from clean_room_agent.languages.interface import FileNames, Interface, parse_interface
from clean_room_agent.languages.nesting import Nested
from clean_room_agent.languages.registry import language_at

CALLABLE = frozenset({"function", "method", "class"})


def read_file(path: str, text: str) -> tuple[Nested, FileNames]:
    """The file's symbols and names."""
    source, grammar = text.encode(), syntax.grammar_of(path)
    assert grammar is not None
    _, nested, names = read_source(syntax.parse(source, grammar).root_node, source, grammar)
    return nested, names


class ReferenceWorld:
    """All files of a repository, from their sources; `others` are the texts of all that is no source."""

    def __init__(
        self, sources: Mapping[str, str], others: Mapping[str, str] | None = None, paths: Collection[str] = ()
    ) -> None:
        files = {path: read_file(path, sources[path]) for path in sorted(sources)}
        self.nested = {path: nested for path, (nested, _) in files.items()}
        self.names = {path: names for path, (_, names) in files.items()}
        self._interfaces: dict[str, Interface] = {}
        self._named: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for path, nested in self.nested.items():
            for place, kind in enumerate(nested.kinds):
                if kind in CALLABLE:
                    self._named[nested.definitions[place].name].append((path, place))
        language = language_at(next(iter(sources)))
        assert language is not None
        texts = others or {}
        self._modules = language.modules({*sources, *texts, *paths}, texts.get)

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

    def unique(self, source: str, name: str) -> tuple[str, int] | None:
        """As the real one."""
        found = self._named.get(name, ())
        return found[0] if len(found) == 1 else None

    def count(self, name: str) -> int:
        """How many callables have this name."""
        return len(self._named.get(name, ()))

    def resolve(self, path: str) -> Resolved:
        """The file's references."""
        return resolve_file(path, self.names[path], Evaluations(self))

    def references(self, path: str) -> list[str]:
        """The file's references as `caller -> [path:]callee kind confidence`, sorted."""
        said = []
        for caller, callee_path, callee, kind, confidence in self.resolve(path).references:
            where = "" if callee_path == path else f"{callee_path}:"
            names = self.nested[path].names[caller], self.nested[callee_path].names[callee]
            said.append(f"{names[0]} -> {where}{names[1]} {kind} {confidence:g}")
        return sorted(said)
