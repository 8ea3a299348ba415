"""What a language reader returns for one file: definitions, comments, imports."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec import Struct, field
from tree_sitter import Node

BLANK_LINE = re.compile(r"\n[ \t]+(?=\n|\Z)")
INDENTATION = re.compile(r"\n( *)(?=[^ \n])")

Span = tuple[int, int]
"""First byte, and the byte after the last."""


class Definition(NamedTuple):
    """A named thing and the bytes it covers, including decorators and `export`."""

    name: str
    kind: str
    """function, class, method, interface, type_alias, enum or variable; a function in a class is made a method."""
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
    """Whether it counts only inside a class, an interface or a variable: what is set to the keys of an object."""


class Comment(NamedTuple):
    """One comment, or several adjacent full-line ones."""

    start: int
    line: int
    """1-based, of the first."""
    text: str
    """Without comment marks."""


class RawImport(NamedTuple):
    """An import as it is written."""

    target: str
    """Python: the module with its leading dots. JavaScript: the specifier."""
    names: tuple[str, ...] = ()
    """Python's `from` imports: what is taken from the module; `*` for all."""
    kind: str = "import"
    """import or type_ref."""
    aliases: tuple[str, ...] = ()
    """Python: what `names` are called here, in their order; of `import a.b as c`, that one name."""
    start: int = 0
    """First byte of the statement."""


class ParsedFile(Struct, kw_only=True):
    """Everything read from one file; filled by a language reader."""

    definitions: list[Definition] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    imports: list[RawImport] = field(default_factory=list)
    module_doc: str = ""


def text_of(source: bytes, node: Node) -> str:
    """The node's text."""
    # A node's own text would be asked of the parser's reader, from the file's beginning.
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def named_nodes(root: Node) -> Iterator[Node]:
    """The node and the named ones below it, in the order of the text."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.named_children))


def last_line(node: Node) -> int:
    """The 1-based line of the node's last character."""
    row, column = node.end_point
    return row if column == 0 and node.end_byte > node.start_byte else row + 1


def dedented(text: str) -> str:
    """Strip the indentation that all lines after the first have in common."""
    if "\n" not in text:
        return text.strip()
    text = BLANK_LINE.sub("\n", text.expandtabs())
    margin = min(map(len, INDENTATION.findall(text)), default=0)
    return (text.replace("\n" + " " * margin, "\n") if margin else text).strip()


def outermost(spans: Iterable[Span]) -> Iterator[Span]:
    """The spans that no other contains, in order. Spans may overlap only by containment."""
    last = -1
    for start, end in sorted(spans):
        if start >= last:
            last = end
            yield start, end
