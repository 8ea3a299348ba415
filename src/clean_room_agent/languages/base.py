"""What the program asks of a language: how its files are read, what their imports mean, what its syntax calls things.

A language is a folder here with one class that fills `Language`, and a line in `registry.LANGUAGES`. What asks
(indexer, retrieval, edits, candidates) names none.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from clean_room_agent.languages.nodes import NONE, Nodes

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

    from clean_room_agent.languages.docstrings import DocFormat
    from clean_room_agent.languages.interface import FileNames
    from clean_room_agent.languages.mutation import Mutation
    from clean_room_agent.languages.nesting import Nested
    from clean_room_agent.languages.outline import Outliner
    from clean_room_agent.languages.parsed import ParsedFile

WORD = re.compile(r"[^./?#!\s]+")
ReadText = Callable[[str], str | None]
"""The text of a configuration file at a path; None if it cannot be read."""


class ModuleRef(NamedTuple):
    """What a module's name, as an import writes it, refers to: a file, a folder, or a package of several files."""

    file: str | None
    """The module's own file, a package's `__init__`; None for a namespace package, and for one of several files."""
    folder: str | None
    """Where submodules stand; None for a plain module."""
    portions: tuple[str, ...] = ()
    """Where else those of a namespace package stand, in the order of the path."""
    far: tuple[str, ...] = ()
    """Roots of other projects that may belong to it: what only one of them holds is found there, too."""
    files: tuple[str, ...] = ()
    """All files of a package whose names are those of its files, where files are no modules of their own."""


class Reach(NamedTuple):
    """Files of a language whose imports may resolve differently. One is affected if any of these names it."""

    words: frozenset[str] = NONE
    """Those with one of these among the words of an import's target."""
    folders: frozenset[str] = NONE
    """Those in or under one of these; "" is the repository's root."""
    everything: bool = False


class Modules(Protocol):
    """The modules of a repository, as the imports of one language find them; as it is here, none."""

    def find(self, source: str, target: str) -> ModuleRef | None:
        """What `target`, as it is written in the file `source`, refers to; None if it is not in the repository."""
        return None

    def child(self, ref: ModuleRef, name: str) -> ModuleRef | None:
        """The submodule `name`; None if there is none."""
        return None

    def reach(self, path: str) -> Reach:
        """Who is affected when `path` is added or removed or, if it `is_configuration`, when it changes.

        These are the modules among the paths that were neither added nor removed.
        """
        return Reach()


class NoModules(Modules):
    """The modules of a language in which no import is followed."""


class Language(Protocol):
    """A language. Attributes and methods with a default are what holds of one that has nothing to say to it."""

    suffixes: Mapping[str, str]
    """Suffix of a file -> its grammar."""
    names: Mapping[str, str]
    """Grammar -> what the index calls the language of such a file."""
    nodes: Nodes
    explicit_exports: bool = False
    """Whether an import leads to one file, whatever it takes from there, and a module offers only what it exports; else
    others see every name of a module, and an import depends on the files that define what it takes. A language that fills `modules`,
    and not `read_names`, sets it: without names, no import leads anywhere else."""

    own_package: str = ""
    """The target that stands for the package of a file, where all files of a folder share their names, and members of a
    type may be defined in any of them."""

    def load(self, grammar: str) -> object:
        """The grammar, as `tree_sitter.Language` takes it."""

    def query(self, grammar: str) -> str:
        """What is captured of a file's tree: one query, because each walks the whole tree."""

    def read(
        self, root: "Node", captures: "Mapping[str, Sequence[Node]]", source: bytes, grammar: str
    ) -> "ParsedFile":
        """Definitions, comments and imports. The nodes of a capture may come in any order."""

    def read_names(
        self, captures: "Mapping[str, Sequence[Node]]", source: bytes, nested: "Nested", parsed: "ParsedFile"
    ) -> "FileNames":
        """The file's interface for other files, and the names that it uses."""
        from clean_room_agent.languages.interface import FileNames, write_interface, write_uses

        return FileNames(write_interface({}, {}, (), None), write_uses({}, (), ()))

    def read_documentation(self, text: str) -> "tuple[DocFormat, str | None]":
        """The format of a definition's documentation and its fields as JSON, None if it has none."""
        return "plain", None

    def common_members(self) -> frozenset[str]:
        """Names that say nothing of what a use means, although only one definition has them."""
        return NONE

    def modules(self, paths: Collection[str], read: ReadText) -> Modules:
        """The modules among these paths, which are of this language or of none."""
        return NoModules()

    def is_configuration(self, path: str) -> bool:
        """Whether the content of the file, not just its existence, affects how imports resolve."""
        return False

    def outliner(self) -> "Outliner":
        """What reads the outlines of test files."""
        from clean_room_agent.languages.outline import Outliner

        return Outliner(self.nodes)

    def owner(self, definition: "Node") -> str:
        """The qualified name of what a definition belongs to and does not stand in; "" for none."""
        return ""

    def undefined_names(
        self, before: str, after: str, parse: "Callable[[str], Tree | None]"
    ) -> Mapping[str, int]:
        """The names that the text `after` leaves undefined and `before` did not, each with its first line (1-based); none
        where that cannot be known.
        """
        return {}

    def syntax_error(self, before: str, after: str) -> tuple[int, str] | None:
        """The line (1-based) and the message of the first syntax error of `after`, with "" for none, by a compiler of the
        language that found `before` right; None if there is none that can judge it.
        """
        return None

    def stated_test(self, call: str, wanted: str, error: str) -> str:
        """A test that says what a call should give, or which error it should raise, as code; "" if there is no usual one."""
        return ""

    def stated_examples(self, summary: str, examples: Iterable[tuple[str, str, str]]) -> list[str]:
        """Lines of a definition's documentation with what its calls should give, or raise; empty if that is unusual."""
        return []

    def mutations(self, text: str) -> "list[Mutation]":
        """Small faults that can be planted in the file's functions, in order; not every result need parse."""
        return []


def above(folder: str) -> Iterator[str]:
    """Yield the folder, its parents, and finally the repository's root ("")."""
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]
    yield ""
