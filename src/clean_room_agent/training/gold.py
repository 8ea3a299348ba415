"""Reads what a task turned out to need from its accepted change: the files and definitions that it touches.

A hunk that only changes white space says nothing about what was needed and is left out. Changed definitions are read
from the diff itself, since the record has no syntax trees: for each changed line, the nearest definitions above it that
are indented less, among the hunk's own lines, or else the one that git's hunk header names. For

    @@ -15,8 +17,8 @@ class Ledger:
         def charge_evenly(self, names, cents):
    -        for name in names:
    +        for name, share in shares:

these are `charge_evenly` and `Ledger`. A hunk deep inside a long definition names what its header names, or nothing.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct

from clean_room_agent.unified_diff import DiffLine, FileDiff, file_diffs

Change = Literal["modified", "created", "deleted"]

DEFINITION = re.compile(
    r"(?:export\s+)?(?:default\s+)?(?:abstract\s+)?(?:async\s+)?"
    r"(?:def|class|function\*?|interface|enum|type|const|let|var)\s+(?P<name>[A-Za-z_$][\w$]*)"
)
CHANGES: Mapping[str, Change] = {"changed": "modified", "created": "created", "deleted": "deleted"}
"""By the status of a file's diff."""
INDENTED = (".py", ".pyi")
"""Languages in which indentation means something."""


class AcceptedFile(Struct, frozen=True, kw_only=True):
    """One file of the accepted change."""

    path: str
    change: Change
    names: frozenset[str]
    """Of the definitions that are changed, without the enclosing ones; empty if the diff does not show them."""

    def touches(self, symbol: str) -> bool:
        """Whether a piece of this qualified name is one of the changed ones."""
        return symbol.rpartition(".")[2] in self.names


class AcceptedChange(Struct, frozen=True, kw_only=True):
    """The whole of an accepted change."""

    files: tuple[AcceptedFile, ...]
    """By path."""

    @property
    def required(self) -> tuple[AcceptedFile, ...]:
        """The files that had to be found: those that existed."""
        return tuple(file for file in self.files if file.change != "created")

    def file(self, path: str) -> AcceptedFile | None:
        """The file of that path, if it is part of the change."""
        return next((file for file in self.files if file.path == path), None)


def gold_of(diffs: Iterable[str]) -> AcceptedChange:
    """The combined changes of successive git diffs, without mere formatting."""
    changes: dict[str, Change] = {}
    names: dict[str, set[str]] = defaultdict(set)
    for file in (file for diff in diffs for file in file_diffs(diff)):
        path, change, hunks = file.path, CHANGES[file.status], _hunk_lines(file)
        real = [hunk for hunk in hunks if not _is_formatting(path, hunk)]
        if not hunks or (not real and change == "modified"):
            continue
        if changes.get(path) != "created" or change == "deleted":
            changes[path] = change
        for hunk in real:
            names[path] |= _changed_names(hunk)
    return AcceptedChange(
        files=tuple(
            AcceptedFile(path=path, change=change, names=frozenset(names[path]))
            for path, change in sorted(changes.items())
        )
    )


def _hunk_lines(file: FileDiff) -> list[list[DiffLine]]:
    """The lines of each hunk, its header first."""
    hunks: list[list[DiffLine]] = []
    for line in file.lines:
        if line.kind == "hunk":
            hunks.append([line])
        elif hunks and line.kind != "note":
            hunks[-1].append(line)
    return hunks


def _is_formatting(path: str, hunk: list[DiffLine]) -> bool:
    removed = [line.text for line in hunk if line.kind == "deleted"]
    added = [line.text for line in hunk if line.kind == "added"]
    if "".join("".join(removed).split()) != "".join("".join(added).split()):
        return False
    same_lines = [line.strip() for line in removed] == [line.strip() for line in added]
    moved = same_lines and any(
        _indent_width(before) != _indent_width(after) for before, after in zip(removed, added, strict=True)
    )
    return not (moved and path.endswith(INDENTED))


def _changed_names(hunk: list[DiffLine]) -> set[str]:
    above = DEFINITION.search(hunk[0].text)
    around: list[tuple[int, str]] = [(-1, above["name"])] if above else []
    found: set[str] = set()
    for line in hunk[1:]:
        text = line.text
        if not text.strip():
            continue
        indent = _indent_width(text)
        while around and around[-1][0] >= indent:
            around.pop()
        definition = DEFINITION.match(text.strip())
        is_own = definition is not None and not _is_plain_variable(text, indent)
        if is_own and definition is not None:
            around.append((indent, definition["name"]))
        if line.kind != "same" and around and (around[-1][0] >= 0 or indent > 0):
            found.add(around[-1][1])
    return found


def _is_plain_variable(text: str, indent: int) -> bool:
    """Whether the line declares a variable within a function, which is not a definition for the index."""
    return indent > 0 and re.match(r"(?:const|let|var|type)\b", text.strip()) is not None


def _indent_width(text: str) -> int:
    expanded = text.expandtabs(8)
    return len(expanded) - len(expanded.lstrip())
