"""The definitions in a file, by its syntax tree or as a context shows them."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace
from tree_sitter import Node

from clean_room_agent.artifacts.context import ContextItem
from clean_room_agent.execute.edits.search_replace import line_starts
from clean_room_agent.languages.base import Language
from clean_room_agent.languages.nodes import Nodes
from clean_room_agent.languages.registry import language_at
from clean_room_agent.syntax import tree_of

AFTER_DEFINITION = " \t\r;,"


class SymbolSpan(Struct, frozen=True, kw_only=True):
    """Where a symbol is, in character offsets."""

    symbol: str
    """Qualified name (`Class.method`)."""
    start: int
    """First character of its first line, decorators and `export` included."""
    end: int
    """Behind the last character of its last line; the line end is not part of it."""


SpanT = TypeVar("SpanT", bound=SymbolSpan)


def symbol_spans(items: Iterable[ContextItem], text: str) -> tuple[SymbolSpan, ...]:
    """The spans in `text` of those items that are symbols, in order of place.

    A symbol whose text is no longer at its lines is searched for in the file; it has no span unless it occurs there
    exactly once.
    """
    lines = text.split("\n")
    bare = [line.removesuffix("\r") for line in lines]
    joined = "\n".join(bare)
    starts = line_starts(lines)
    spans = []
    for item in items:
        if item.symbol is None or not item.text.strip():
            continue
        shown = item.text.removesuffix("\n").split("\n")
        first = item.start_line - 1
        if bare[first : first + len(shown)] != shown:
            first = only_row(joined, shown)
        if first >= 0:
            last = first + len(shown) - 1
            spans.append(
                SymbolSpan(symbol=item.symbol, start=starts[first], end=starts[last] + len(bare[last]))
            )
    return tuple(sorted(spans, key=lambda span: (span.start, -span.end, span.symbol)))


def only_row(text: str, lines: list[str]) -> int:
    """The 0-based row at which `lines` occur in `text`; -1 if they do not, or more than once."""
    framed, wanted = f"\n{text}\n", "\n".join(("", *lines, ""))
    place = framed.find(wanted)
    if place < 0 or framed.find(wanted, place + 1) >= 0:
        return -1
    return framed.count("\n", 0, place)


def moved(
    spans: tuple[SymbolSpan, ...], quoted: tuple[int, int], changed: tuple[int, int], length: int
) -> tuple[SymbolSpan, ...]:
    """The spans after the characters `changed`, which lie in `quoted`, became `length` characters.

    A span that holds all of `quoted` grows or shrinks with it; one that `changed` cuts into is gone.
    """
    start, end = changed
    delta = length - (end - start)
    kept = []
    for span in spans:
        if span.start <= quoted[0] and quoted[1] <= span.end:
            kept.append(replace(span, end=span.end + delta))
        elif span.end <= start:
            kept.append(span)
        elif span.start >= end:
            kept.append(replace(span, start=span.start + delta, end=span.end + delta))
        elif span.start <= start and end <= span.end:
            kept.append(replace(span, end=span.end + delta))
    return tuple(kept)


def shown_ranges(spans: tuple[SymbolSpan, ...], text: str) -> tuple[tuple[int, int], ...]:
    """The character ranges of `spans`; those with nothing but blanks between them are one."""
    ranges: list[tuple[int, int]] = []
    for span in sorted(spans, key=lambda span: span.start):
        if ranges and not text[ranges[-1][1] : span.start].strip():
            ranges[-1] = (ranges[-1][0], max(ranges[-1][1], span.end))
        else:
            ranges.append((span.start, span.end))
    return tuple(ranges)


def named(known: tuple[SpanT, ...], symbol: str) -> tuple[SpanT, ...]:
    """The entries for `symbol`: by its qualified name, or else by a qualified name that ends in it."""
    exact = tuple(one for one in known if one.symbol == symbol)
    return exact or tuple(one for one in known if one.symbol.endswith(f".{symbol}"))


class EditableDefinition(SymbolSpan, frozen=True, kw_only=True):
    """A definition that has its lines to itself."""

    top: int
    """First character of the lines that belong to it: comments directly above it, its overloads."""
    body: tuple[int, int] | None = None
    """For a class, from the first line of its body to `end`, or what is between its braces; None if the body is on the
    class's own line.
    """
    braces: bool = False

    @property
    def scope(self) -> str:
        """The qualified name of the enclosing definition; "" for the file."""
        return self.symbol.rpartition(".")[0]


class _DefinitionNodes(Struct, frozen=True, kw_only=True):
    """A definition in the syntax tree."""

    symbol: str
    node: Node
    first: Node
    """What it begins with: its first decorator, its `export`, itself."""
    last: Node
    """What it ends with: the outermost node that wraps it."""


class _Rows(Struct, kw_only=True):
    """A text by rows, as the parser counts them, and what precedes definitions."""

    lines: list[str]
    starts: list[int]
    comments: dict[int, int] = field(default_factory=dict)
    """Last row -> first row of each comment that has its lines to itself."""
    overloads: dict[tuple[int, str], int] = field(default_factory=dict)
    """The same for each signature, by row and name."""

    def offset(self, row: int, column: int) -> int:
        """The character offset of a column counted in bytes."""
        return self.starts[row] + len(_slice_at_column(self.lines[row], column, head=True))

    def line_end(self, row: int) -> int:
        """Behind the last character of a line, without its line end."""
        return self.starts[row] + len(self.lines[row].removesuffix("\r"))

    def has_to_itself(self, first: Node, last: Node) -> bool:
        """Whether nothing but blanks and separators shares the lines from one node to another."""
        before = _slice_at_column(self.lines[first.start_point.row], first.start_point.column, head=True)
        after = _slice_at_column(self.lines[last.end_point.row], last.end_point.column, head=False)
        return not before.strip() and not after.strip(AFTER_DEFINITION)

    def top(self, row: int, name: str) -> int:
        """The first row of what belongs to the definition of `name` that begins at `row`."""
        above: int | None = row
        while above is not None:
            row = above
            above = self.overloads.get((row - 1, name), self.comments.get(row - 1))
        return row


def definitions(path: str, text: str) -> tuple[EditableDefinition, ...]:
    """Each definition that has its lines to itself, in order of place. Empty if there is no grammar for the file, or it
    is too large to parse. A name may occur more than once (overloads, conditional definitions).
    """
    tree = tree_of(text.encode("utf-8", "replace"), path)
    if tree is None:
        return ()
    language = language_at(path)
    assert language is not None, "what has a tree has a language"
    lines = text.split("\n")
    rows = _Rows(lines=lines, starts=line_starts(lines))
    found = [
        _editable_definition(one, rows, language.nodes)
        for one in _find_definition_nodes(tree.root_node, rows, language)
    ]
    return tuple(sorted(found, key=lambda one: (one.start, -one.end, one.symbol)))


def _find_definition_nodes(root: Node, rows: _Rows, language: Language) -> list[_DefinitionNodes]:
    """Each definition under `root` that has its lines to itself; comments and signatures are noted in `rows`."""
    found: list[_DefinitionNodes] = []
    nodes = language.nodes
    stack = [_DefinitionNodes(symbol="", node=root, first=root, last=root)]
    while stack:
        at = stack.pop()
        symbol = at.symbol
        named = at.node.type in nodes.definitions or at.node.type in nodes.overloads
        name_field = "property" if at.node.type == "field_definition" else "name"
        name_node = at.node.child_by_field_name(name_field) if named else None
        if name_node is not None and name_node.text is not None:
            name = name_node.text.decode("utf-8", "replace")
            if at.node.type in nodes.overloads:
                rows.overloads[at.last.end_point.row, name] = at.first.start_point.row
            else:
                holder = language.owner(at.node) or symbol
                symbol = f"{holder}.{name}".removeprefix(".")
                if rows.has_to_itself(at.first, at.last):
                    found.append(replace(at, symbol=symbol))
        elif at.node.type == "comment" and rows.has_to_itself(at.node, at.node) and not _is_shebang(at.node):
            rows.comments[at.node.end_point.row] = at.node.start_point.row
        stack.extend(_children_with_bounds(at, symbol, nodes))
    return found


def _children_with_bounds(at: _DefinitionNodes, symbol: str, nodes: Nodes) -> Iterator[_DefinitionNodes]:
    """The children of a node, each with what it begins and ends with."""
    decorator: Node | None = None
    wraps = at.node.type in nodes.wrappers and not any(child.type == "(" for child in at.node.children)
    for child in at.node.named_children:
        if wraps:
            yield _DefinitionNodes(symbol=symbol, node=child, first=at.first, last=at.last)
            continue
        yield _DefinitionNodes(symbol=symbol, node=child, first=decorator or child, last=child)
        if child.type == "decorator":
            decorator = decorator or child
        elif child.type != "comment":
            decorator = None


def _editable_definition(found: _DefinitionNodes, rows: _Rows, nodes: Nodes) -> EditableDefinition:
    first, last = found.first.start_point.row, found.last.end_point.row
    end = rows.line_end(last)
    body = found.node.child_by_field_name("body")
    inside: tuple[int, int] | None = None
    braces = body is not None and body.type in nodes.class_bodies
    if body is not None and braces:
        inside = (
            rows.offset(body.start_point.row, body.start_point.column) + 1,
            rows.offset(body.end_point.row, body.end_point.column) - 1,
        )
    elif body is not None and found.node.type in nodes.classes:
        before = _slice_at_column(rows.lines[body.start_point.row], body.start_point.column, head=True)
        inside = None if before.strip() else (rows.starts[body.start_point.row], end)
    return EditableDefinition(
        symbol=found.symbol,
        top=rows.starts[rows.top(first, found.symbol.rpartition(".")[2])],
        start=rows.starts[first],
        end=end,
        body=inside,
        braces=braces,
    )


def _is_shebang(comment: Node) -> bool:
    return comment.start_byte == 0 and (comment.text or b"").startswith(b"#!")


def _slice_at_column(line: str, column: int, *, head: bool) -> str:
    """The line before or behind a column counted in bytes."""
    data = line.encode("utf-8", "replace")
    return (data[:column] if head else data[column:]).decode("utf-8", "replace")
