"""`/** */` comments: which definition each documents, and their text."""

import inspect
import re

from tree_sitter import Node

from clean_room_agent.indexer.languages.parsed import text_of

DOC_MARKS = re.compile(r"^[ \t]*\*[ ]?", re.MULTILINE)
LINE_MARKS = re.compile(r"^/{2,}[ \t]?")
BLANK = re.compile(rb"\s*")
FILE_TAGS = re.compile(r"@(?:file|fileoverview|overview|module|packageDocumentation)\b")


class DocComments:
    """The `/** */` comments of a file by the byte at which the documented thing begins."""

    def __init__(self, comments: list[Node], source: bytes) -> None:
        self._source = source
        self._comments = comments
        self._by_start: dict[int, Node] = {}
        self._used: set[int] = set()
        for node in comments:
            if source.startswith(b"/**", node.start_byte) and node.end_byte - node.start_byte > 5:
                blank = BLANK.match(source, node.end_byte)
                self._by_start[blank.end() if blank else node.end_byte] = node

    def at(self, start: int) -> str:
        """The documentation of what begins at byte `start`."""
        node = self._by_start.get(start)
        if node is None:
            return ""
        self._used.add(node.start_byte)
        return _clean_block(text_of(self._source, node))

    def module_doc(self, root: Node) -> str:
        """The first comment of the file, where it documents nothing else and says so or stands apart."""
        first = next((child for child in root.children[:3] if child.type != "hash_bang_line"), None)
        if first is None or first.type != "comment" or first.start_byte in self._used:
            return ""
        text = text_of(self._source, first)
        if not text.startswith("/*"):
            return ""
        rest = self._source[first.end_byte : first.end_byte + 200].lstrip(b" \t\r")
        if FILE_TAGS.search(text) or (text.startswith("/**") and rest.startswith(b"\n\n")):
            self._used.add(first.start_byte)
            return _clean_block(text)
        return ""

    def others(self) -> list[tuple[Node, str]]:
        """The comments that document nothing, each without its marks."""
        return [
            (node, _clean(text_of(self._source, node)))
            for node in self._comments
            if node.start_byte not in self._used
        ]


def _clean_block(text: str) -> str:
    return inspect.cleandoc(DOC_MARKS.sub("", text.removeprefix("/*").removesuffix("*/").lstrip("*"))).strip()


def _clean(text: str) -> str:
    return _clean_block(text) if text.startswith("/*") else LINE_MARKS.sub("", text).strip()
