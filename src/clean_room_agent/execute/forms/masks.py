"""What can be taken out of a definition to be written anew: its executed lines, their parts, several lines together, and the gaps
beside them.
"""

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct
from tree_sitter import Node

from clean_room_agent.execute.forms.place import Parsed, Place, body_of, docstring_of
from clean_room_agent.languages.nodes import Nodes
from clean_room_agent.syntax import statement_spans, walk

MaskKind = Literal["line", "statement", "part", "neighbours", "gap"]
HANDED_ON = re.compile(r"\s*(\w+)=\1,?\s*\Z")
"""An argument on a line of its own, given under its own name: seldom what is wrong."""
MOST_STATEMENT_LINES = 8
MOST_NEIGHBOURS = 4
MOST_PARTS = 6
"""Of one line."""


class Mask(Struct, frozen=True, kw_only=True, order=True):
    """What is taken out of a file: the bytes from `start` to `end`; a gap has none."""

    kind: MaskKind
    start: int
    end: int
    first_line: int
    last_line: int

    @property
    def name(self) -> str:
        """Tells the masks of a file apart."""
        return f"{self.kind} {self.first_line}-{self.last_line} {self.start}-{self.end}"

    @classmethod
    def gap_before(cls, parsed: Parsed, line: int) -> "Mask":
        """The gap in front of a line."""
        at = parsed.start(line)
        return cls(kind="gap", start=at, end=at, first_line=line, last_line=line - 1)

    @classmethod
    def of_lines(cls, parsed: Parsed, kind: MaskKind, first: int, last: int) -> "Mask":
        """Whole lines."""
        return cls(
            kind=kind, start=parsed.start(first), end=parsed.end(last), first_line=first, last_line=last
        )

    @property
    def whole_lines(self) -> bool:
        """Whether it is one or more lines with their indentation."""
        return self.kind != "part"


def masks_by_line(parsed: Parsed, place: Place) -> list[list[Mask]]:
    """The masks of each executed line that says something, by rank of the lines: its parts with what it returns, assigns or
    decides by first, then the whole line; the statement, if it has several lines; gaps beside it; it with neighbours.
    """
    lines = _executed_lines(parsed, place)
    seen: set[tuple[int, int]] = set()
    parts = _part_masks(parsed, place)
    found = []
    for line in lines:
        whole = Mask.of_lines(parsed, "line", line, line)
        main, *more = [*parts.get(line, []), whole]
        masks = dict.fromkeys((main, whole, *statement_at(parsed, place, line), *more))
        masks |= dict.fromkeys((*_gap_masks(parsed, place, line), *_neighbour_masks(parsed, place, line)))
        new = [mask for mask in masks if (mask.start, mask.end) not in seen]
        seen.update((mask.start, mask.end) for mask in new)
        if new:
            found.append(new)
    return found


def _executed_lines(parsed: Parsed, place: Place) -> list[int]:
    """The executed lines of the body, by rank, without those that say nothing: brackets, `else:`. (A `pass` may stand where
    something was lost.) What imports comes last, and before it arguments that are handed on under their names.
    """
    first, last = _body_rows(parsed, place)
    found = [
        line
        for line in dict.fromkeys(place.lines)
        if first <= line <= last and _says_something(parsed.lines[line - 1])
    ]
    root = parsed.node(place)
    imports = {
        node.start_point.row + 1
        for node in ([] if root is None else walk(root))
        if node.type in parsed.nodes.imports
    }
    return sorted(
        found, key=lambda line: 2 * (line in imports) + bool(HANDED_ON.match(parsed.lines[line - 1]))
    )


def _body_rows(parsed: Parsed, place: Place) -> tuple[int, int]:
    """First and last line of the body without its docstring; (1, 0) if there is none."""
    node = parsed.node(place)
    body = None if node is None else body_of(node, parsed.nodes)
    if node is None or body is None:
        return 1, 0
    document = docstring_of(node, parsed.nodes)
    begin = body.start_point.row + (1 if parsed.nodes.indented else 2)
    return (begin if document is None else document.end_point.row + 2), body.end_point.row + (
        1 if parsed.nodes.indented else 0
    )


def _says_something(line: str) -> bool:
    bare = line.strip().rstrip(":{").strip("(){}[]; ,")
    return (
        bool(bare)
        and bare not in {"else", "try", "finally", "do", '"""', "'''"}
        and not line.strip().startswith(("#", "//", "*", "/*", "@", "def ", "async def ", "class "))
    )


def statement_at(parsed: Parsed, place: Place, line: int) -> Iterator[Mask]:
    """The statement at a line, if it has several lines."""
    first, last = statement_spans(parsed.raw, place.path).get(line, (line, line))
    if place.first_line <= first < last <= place.last_line and last - first < MOST_STATEMENT_LINES:
        yield Mask.of_lines(parsed, "statement", first, last)


def _neighbour_masks(parsed: Parsed, place: Place, line: int) -> Iterator[Mask]:
    begin, end = _body_rows(parsed, place)
    for size in range(2, MOST_NEIGHBOURS + 1):
        for first in (line, line - 1):
            last = first + size - 1
            if begin <= first and last <= end and all(map(str.strip, parsed.lines[first - 1 : last])):
                yield Mask.of_lines(parsed, "neighbours", first, last)


def _gap_masks(parsed: Parsed, place: Place, line: int) -> Iterator[Mask]:
    """Before the line, and behind it: where one may be missing."""
    begin, end = _body_rows(parsed, place)
    for at in (line, line + 1):
        if begin <= at <= end + 1 and at <= len(parsed.lines):
            yield Mask.gap_before(parsed, at)


def _part_masks(parsed: Parsed, place: Place) -> dict[int, list[Mask]]:
    """Conditions, what is returned or assigned, and arguments, together and each, on one line: the outermost first, by line."""
    root = parsed.node(place)
    by_line: dict[int, dict[tuple[int, int], Mask]] = {}
    for node in [] if root is None else walk(root):
        for first, last in _fallible_parts(node, parsed.nodes):
            row, start, end = first.start_point.row + 1, first.start_byte, last.end_byte
            masks = by_line.setdefault(row, {})
            if row == last.end_point.row + 1 and end > start and len(masks) < MOST_PARTS:
                mask = Mask(kind="part", start=start, end=end, first_line=row, last_line=row)
                masks.setdefault((start, end), mask)
    return {line: list(masks.values()) for line, masks in by_line.items()}


def _fallible_parts(node: Node, nodes: Nodes) -> Iterator[tuple[Node, Node]]:
    """First and last node of each part: all arguments together, then each."""
    fields = [node.child_by_field_name(name) for name in nodes.parts.get(node.type, ())]
    if node.type in nodes.first_parts:
        fields += node.named_children[:1]
    elif node.type in nodes.arguments:
        if node.named_child_count > 1:
            yield node.named_children[0], node.named_children[-1]
        fields += node.named_children
    elif node.type == "conditional_expression":
        fields += node.named_children[1:2]
    for inner in fields:
        if inner is None:
            continue
        bracketed = inner.type == "parenthesized_expression" and inner.named_children
        own = inner.named_children[0] if bracketed else inner
        yield own, own
