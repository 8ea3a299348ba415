"""The files of the tree that tests ran in, as far as failures point into them."""

import textwrap
from collections.abc import Mapping
from pathlib import Path

from clean_room_agent import safe_open
from clean_room_agent.syntax import MAX_PARSED_BYTES, statement_spans

MAX_STATEMENT_LINES = 12
"""A longer statement is shown as its one line."""
MAX_STATEMENT = 1_000
MAX_FILES = 8
"""Kept at a time: failures come in the order of their files."""


class SourceTree:
    """Reads files below one folder, without following links."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._read: dict[str, tuple[list[str], Mapping[int, tuple[int, int]]]] = {}

    def exists(self, path: str) -> bool:
        """Whether a regular file stands at the relative path."""
        return safe_open.is_file(self._root, path)

    def statement(self, path: str, line: int) -> str:
        """The statement at a 1-based line, stripped, or that line alone; "" where there is none."""
        lines, spans = self._file(path)
        if not 0 < line <= len(lines):
            return ""
        first, last = spans.get(line, (line, line))
        if last - first >= MAX_STATEMENT_LINES or last > len(lines):
            first = last = line
        text = lines[first - 1].lstrip() if first == last else "\n".join(lines[first - 1 : last])
        return textwrap.dedent(text).strip()[:MAX_STATEMENT]

    def statement_lines(self, path: str, line: int) -> tuple[int, int]:
        """First and last line of the statement at a 1-based line; that line alone where there is none."""
        return self._file(path)[1].get(line, (line, line))

    def _file(self, path: str) -> tuple[list[str], Mapping[int, tuple[int, int]]]:
        if path not in self._read:
            try:
                data = safe_open.read_bytes(self._root, path, max_bytes=MAX_PARSED_BYTES + 1)
            except OSError:
                data = b""
            if len(self._read) >= MAX_FILES:
                self._read.clear()
            lines = data.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
            self._read[path] = (lines, statement_spans(data, path))
        return self._read[path]
