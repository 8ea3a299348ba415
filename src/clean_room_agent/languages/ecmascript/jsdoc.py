"""JSDoc comments: which definition each one documents, its text, and the types that it defines."""

import re
from collections.abc import Iterator, Sequence

from tree_sitter import Node

from clean_room_agent.languages.parsed import Definition, dedented, last_line, text_of

DOC_MARKS = re.compile(r"^[ \t]*\*[ ]?", re.MULTILINE)
LINE_MARKS = re.compile(r"^/{2,}[ \t]?")
BETWEEN = re.compile(rb"(?:\s+|//[^\n]*\n|/\*(?!\*).*?\*/)*", re.DOTALL)
"""What may stand between a documentation and what it documents."""
FILE_TAGS = re.compile(r"@(?:file|fileoverview|overview|module|packageDocumentation)\b")
BRACES = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
TYPEDEF = re.compile(rf"@(?:typedef|callback)\b[ \t]*(?:{BRACES})?\s*([\w$.]+)")


class DocComments:
    """The comments of a file; `/** */` ones by the byte at which the thing they document begins."""

    def __init__(self, comments: Sequence[Node], source: bytes) -> None:
        self._text = source
        self._comments = comments
        self._by_start: dict[int, Node] = {}
        self._used: set[int] = set()
        self._has_typedefs = b"@typedef" in source or b"@callback" in source
        for node in comments:
            start, end = node.byte_range
            if end - start > 5 and source.startswith(b"/**", start):
                between = BETWEEN.match(source, end)
                behind = end if between is None else between.end()
                known = self._by_start.get(behind)
                if known is None or known.start_byte < start:
                    self._by_start[behind] = node

    def doc_at(self, start: int) -> str:
        """The documentation of whatever begins at byte `start`."""
        node = self._by_start.get(start)
        if node is None:
            return ""
        text = text_of(self._text, node)
        if self._has_typedefs and TYPEDEF.search(text):
            return ""
        self._used.add(node.start_byte)
        return _clean_block(text)

    def module_doc(self, root: Node) -> str:
        """The file's first comment, if it documents nothing else and either says so or is set apart."""
        first = next((node for node in root.named_children if not self._is_line(node)), None)
        if first is None or first.type != "comment" or first.start_byte in self._used:
            return ""
        text = text_of(self._text, first)
        rest = self._text[first.end_byte : first.end_byte + 200].lstrip(b" \t\r")
        if FILE_TAGS.search(text) or (text.startswith("/**") and rest.startswith(b"\n\n")):
            self._used.add(first.start_byte)
            return _clean_block(text)
        return ""

    def _is_line(self, node: Node) -> bool:
        return node.type == "hash_bang_line" or self._text.startswith(b"//", node.start_byte)

    def typedefs(self) -> Iterator[Definition]:
        """The types that `@typedef` and `@callback` define."""
        for node in self._comments if self._has_typedefs else ():
            text = text_of(self._text, node)
            for found in TYPEDEF.finditer(text) if text.startswith("/**") else ():
                self._used.add(node.start_byte)
                owner, _, name = found[1].rpartition(".")
                start, end = node.byte_range
                row = node.start_point[0] + 1
                doc = _clean_block(text)
                yield Definition(
                    name, "type_alias", start, end, row, last_line(node), found[0].strip(), doc, owner
                )

    def other_comments(self) -> list[tuple[Node, str]]:
        """The comments that document nothing, each without its comment marks."""
        return [
            (node, _clean_comment(text_of(self._text, node)))
            for node in self._comments
            if node.start_byte not in self._used
        ]


def _clean_block(text: str) -> str:
    return dedented(DOC_MARKS.sub("", text.removeprefix("/*").removesuffix("*/").lstrip("*")))


def _clean_comment(text: str) -> str:
    return _clean_block(text) if text.startswith("/*") else LINE_MARKS.sub("", text).strip()
