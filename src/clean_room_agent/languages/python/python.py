"""Python, with its stubs. What reads files is imported when one is read: most commands only ask for suffixes and nodes."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import tree_sitter_python
from tree_sitter import Node

from clean_room_agent.languages.base import Language, Modules, ReadText
from clean_room_agent.languages.interface import FileNames

if TYPE_CHECKING:
    from clean_room_agent.languages.docstrings import DocFormat
    from clean_room_agent.languages.nesting import Nested
    from clean_room_agent.languages.parsed import Parsed


class Python(Language):
    """Python, with its stubs."""

    suffixes = {".py": "python", ".pyi": "python"}
    names = {"python": "python"}

    def load(self, grammar: str) -> object:
        """The grammar."""
        return tree_sitter_python.language()

    def query(self, grammar: str) -> str:
        """What is captured."""
        from clean_room_agent.languages.python import definitions, reading

        return definitions.QUERY + reading.QUERY

    def read(
        self, root: Node, captures: Mapping[str, Sequence[Node]], source: bytes, grammar: str
    ) -> "Parsed":
        """Definitions, comments and imports."""
        from clean_room_agent.languages.python import definitions

        return definitions.read(root, captures, source)

    def read_names(
        self, captures: Mapping[str, Sequence[Node]], source: bytes, nested: "Nested", parsed: "Parsed"
    ) -> FileNames:
        """The file's interface, and the names that it uses."""
        from clean_room_agent.languages.python import reading

        return reading.read_names(captures, source, nested, parsed.imports)

    def read_documentation(self, text: str) -> "tuple[DocFormat, str | None]":
        """The docstring's fields."""
        from clean_room_agent.languages.docstrings import read_docstring

        return read_docstring(text)

    def common_members(self) -> frozenset[str]:
        """Attributes of built-in types."""
        from clean_room_agent.languages.python.name_scan import COMMON

        return COMMON

    def modules(self, paths: Collection[str], read: ReadText) -> Modules:
        """The modules among these paths."""
        from clean_room_agent.languages.python.modules import PythonModules

        return PythonModules(paths)
