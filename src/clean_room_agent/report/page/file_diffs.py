"""A unified diff by file and line, each line with its numbers in both versions."""

import re
from dataclasses import dataclass
from typing import Literal

HUNK = re.compile(r"@@ -(?P<old>\d+)(?:,\d+)? \+(?P<new>\d+)(?:,\d+)? @@(?P<rest>.*)")
MARKS: dict[str, "LineKind"] = {"+": "added", "-": "deleted", " ": "same"}
LineKind = Literal["added", "deleted", "same", "hunk", "note"]
FILE = "diff --git "


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """One line without its mark; `old` and `new` are 1-based, None where that version has no such line."""

    kind: LineKind
    """hunk: where a piece begins; note: git's own words, as of a missing newline or a binary file."""
    text: str
    old: int | None = None
    new: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDiff:
    """What was changed in one file."""

    path: str
    status: Literal["changed", "created", "deleted"]
    lines: tuple[DiffLine, ...]

    @property
    def added(self) -> int:
        """Lines that only the new version has."""
        return sum(line.kind == "added" for line in self.lines)

    @property
    def deleted(self) -> int:
        """Lines that only the old version has."""
        return sum(line.kind == "deleted" for line in self.lines)


def file_diffs(diff: str) -> tuple[FileDiff, ...]:
    """The files of a diff as git writes it, in its order. What stands before the first file is left out."""
    found: list[FileDiff] = []
    head: list[str] = []
    body: list[str] = []
    for line in diff.rstrip("\n").split("\n"):
        if line.startswith(FILE):
            found += _file(head, body)
            head, body = [line], []
        elif head:
            (body if body or line.startswith(("@@ ", "Binary ", "GIT binary patch")) else head).append(line)
    return (*found, *_file(head, body))


def _file(head: list[str], body: list[str]) -> list[FileDiff]:
    if not head:
        return []
    created = any(line.startswith("new file ") for line in head)
    deleted = any(line.startswith("deleted file ") for line in head)
    notes = (DiffLine(kind="note", text=line) for line in head if line.startswith(("old mode", "new mode")))
    return [
        FileDiff(
            path=_path(head),
            status="created" if created else "deleted" if deleted else "changed",
            lines=(*notes, *_lines(body)),
        )
    ]


def _path(head: list[str]) -> str:
    """The path that the head names; as git quotes it, where it does."""
    for mark in ("+++ ", "--- "):
        for line in head:
            if line.startswith(mark) and line != f"{mark}/dev/null":
                return line.removeprefix(mark).rstrip("\t").removeprefix("b/" if mark == "+++ " else "a/")
    both = head[0].removeprefix(FILE)
    return both[: len(both) // 2].removeprefix("a/")


def _lines(body: list[str]) -> list[DiffLine]:
    lines = []
    old = new = 0
    for line in body:
        hunk = HUNK.fullmatch(line)
        if hunk is not None:
            old, new = int(hunk["old"]), int(hunk["new"])
            lines.append(DiffLine(kind="hunk", text=hunk["rest"].strip(), old=old, new=new))
            continue
        kind = MARKS.get(line[:1], "note") if old or new else "note"
        if kind == "note":
            lines.append(DiffLine(kind=kind, text=line))
            continue
        in_old, in_new = kind != "added", kind != "deleted"
        lines.append(
            DiffLine(kind=kind, text=line[1:], old=old if in_old else None, new=new if in_new else None)
        )
        old, new = old + in_old, new + in_new
    return lines
