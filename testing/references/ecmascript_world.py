"""A repository of JavaScript and TypeScript files in memory, as the resolver of references sees it."""

from collections.abc import Collection, Mapping
from functools import cache

from tree_sitter import Query, QueryCursor

from clean_room_agent import syntax
from clean_room_agent.indexer.imports.ecmascript import EcmaScriptModules
from clean_room_agent.indexer.imports.python import ModuleRef
from clean_room_agent.indexer.languages.registry import READERS
from clean_room_agent.indexer.nesting import Nested, nest
from clean_room_agent.indexer.references.ecmascript.reading import query, read_names
from clean_room_agent.indexer.references.interface import FileNames
from testing.references.reference_world import ReferenceWorld


@cache
def merged(grammar: str) -> Query:
    """The language's query with that of its names."""
    return Query(syntax.language(grammar), READERS[grammar].query(grammar) + query(grammar))


def read_file(path: str, source: str) -> tuple[Nested, FileNames]:
    """The file's symbols and names."""
    data, grammar = source.encode(), syntax.grammar_of(path) or "typescript"
    root = syntax.parse(data, grammar).root_node
    captures = QueryCursor(merged(grammar)).captures(root)
    nested = nest(READERS[grammar].read(root, captures, data).definitions)
    return nested, read_names(captures, data, nested)


class EcmaScriptWorld(ReferenceWorld):
    """All files of a repository, from their sources; `others` are the texts of all that is no source."""

    def __init__(
        self, sources: Mapping[str, str], others: Mapping[str, str] | None = None, paths: Collection[str] = ()
    ) -> None:
        super().__init__({path: read_file(path, sources[path]) for path in sorted(sources)})
        texts = others or {}
        self._modules = EcmaScriptModules({*sources, *texts, *paths}, texts.get)

    def find(self, source: str, target: str) -> ModuleRef | None:
        """As the real one."""
        path = self._modules.find(source, target)
        return None if path is None else ModuleRef(path, None)

    def child(self, ref: ModuleRef, name: str) -> ModuleRef | None:
        """As the real one."""
        return None
