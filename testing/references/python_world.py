"""A repository of Python files in memory, as the resolver of references sees it."""

from collections.abc import Mapping

from tree_sitter import Query, QueryCursor

from clean_room_agent import syntax
from clean_room_agent.indexer.imports.python import ModuleRef, PythonModules
from clean_room_agent.indexer.languages.python import PythonReader
from clean_room_agent.indexer.nesting import Nested, nest
from clean_room_agent.indexer.references.interface import FileNames
from clean_room_agent.indexer.references.reading import QUERY, read_names
from testing.references.reference_world import ReferenceWorld

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


class PythonWorld(ReferenceWorld):
    """All files of a repository, from their sources."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        super().__init__({path: read_file(sources[path]) for path in sorted(sources)})
        self._modules = PythonModules(self.names)

    def find(self, source: str, target: str) -> ModuleRef | None:
        """As the real one."""
        return self._modules.find(source, target)

    def child(self, ref: ModuleRef, name: str) -> ModuleRef | None:
        """As the real one."""
        return self._modules.child(ref, name)
