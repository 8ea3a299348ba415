"""What a language module reads from a syntax tree, before it is nested, classified and counted."""

from dataclasses import dataclass, field
from typing import Protocol

from tree_sitter import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A named thing and the bytes that it covers, decorators and `export` included."""

    name: str
    kind: str
    start: int
    """First byte."""
    end: int
    """The byte after the last."""
    start_line: int
    """1-based, inclusive."""
    end_line: int
    """1-based, inclusive."""
    signature: str
    doc: str = ""
    """Documentation without quotes or comment marks, dedented."""
    owner: str = ""
    """Dotted prefix of the qualified name that the source spells out: `res` in `res.send = function () {}`."""
    holds: bool = False
    """Whether what is defined inside belongs to it."""
    needs_holder: bool = False
    """Whether it counts only inside a class, an interface or a variable: the functions of an object literal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """One comment as it stands, or several full-line ones that follow one another."""

    start: int
    line: int
    """1-based, of the first."""
    text: str
    """Without comment marks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawImport:
    """An import as it is written."""

    target: str
    """Python: the module with its leading dots. JavaScript: the specifier."""
    names: tuple[str, ...] = ()
    """Python's `from` imports: what is taken from the module."""
    kind: str = "import"
    """import or type_ref."""


@dataclass(slots=True, kw_only=True)
class Parsed:
    """All that was read from one file; filled by one language module, then read."""

    definitions: list[Definition] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    imports: list[RawImport] = field(default_factory=list)
    module_doc: str = ""


class LanguageReader(Protocol):
    """A language: the query that finds what matters, and how a file's matches are read."""

    def query(self, grammar: str) -> str:
        """The query's text for a grammar of this language."""
        ...

    def read(self, root: Node, matches: list[tuple[int, dict[str, list[Node]]]], source: bytes) -> Parsed:
        """What the matches say."""
        ...


def text_of(source: bytes, node: Node) -> str:
    """The node's text."""
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def last_line(node: Node) -> int:
    """The 1-based line of the node's last character."""
    row, column = node.end_point
    return row if column == 0 and node.end_byte > node.start_byte else row + 1
