"""Reads diffs as git writes them: by file, by line with its numbers in both versions, or in hunks that can be left out."""

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from clean_room_agent.artifacts.prompt_sources import PromptSource, SourcedText, compose, sourced

HUNK = re.compile(r"@@ -(?P<old>\d+)(?:,\d+)? \+(?P<new>\d+)(?:,\d+)? @@(?P<rest>.*)")
MARKS: dict[str, "LineKind"] = {"+": "added", "-": "deleted", " ": "same"}
LineKind = Literal["added", "deleted", "same", "hunk", "note"]
FILE = "diff --git "
ESCAPE = re.compile(r"\\([0-7]{3}|.)")
ESCAPED = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13}


class DiffLine(Struct, frozen=True, kw_only=True):
    """One line without its sign; `old` and `new` are 1-based, None if that version has no such line."""

    kind: LineKind
    """hunk: the header of a hunk; note: git's own remark, such as on a missing newline or a binary file."""
    text: str
    old: int | None = None
    new: int | None = None


class FileDiff(Struct, frozen=True, kw_only=True):
    """The changes in one file."""

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


class Hunk(Struct, frozen=True, kw_only=True):
    """One hunk with the header of its file; a file without hunks (a rename, a mode) is one with an empty body."""

    header: str
    body: str

    @property
    def name(self) -> str:
        """The name for log entries."""
        return f"{self.header.split(chr(10), 1)[0]} {self.body.split(chr(10), 1)[0]}".strip()


def file_diffs(diff: str) -> tuple[FileDiff, ...]:
    """The files of a diff, in its order. Anything before the first file is left out."""
    found: list[FileDiff] = []
    head: list[str] = []
    body: list[str] = []
    for line in diff.rstrip("\n").split("\n"):
        if line.startswith(FILE):
            found += _file_if_any(head, body)
            head, body = [line], []
        elif head:
            (body if body or line.startswith(("@@ ", "Binary ", "GIT binary patch")) else head).append(line)
    return (*found, *_file_if_any(head, body))


def diff_of_file(diff: str, path: str) -> FileDiff | None:
    """The changes of the diff in one file; None if there are none."""
    return next((found for found in file_diffs(diff) if found.path == path), None)


def split_hunks(diff: str) -> tuple[Hunk, ...]:
    """The hunks of a diff, in order; `join_hunks` gives the diff back."""
    hunks: list[Hunk] = []
    header: list[str] = []
    body: list[str] = []
    for line in diff.splitlines(keepends=True):
        if line.startswith(FILE):
            hunks += _hunk_if_any(header, body)
            header, body = [line], []
        elif line.startswith("@@ "):
            hunks += _hunk_if_any(header, body) if body else []
            body = [line]
        else:
            (body or header).append(line)
    return (*hunks, *_hunk_if_any(header, body))


def join_hunks(hunks: tuple[Hunk, ...]) -> SourcedText:
    """The hunks as a diff, each file's header once; each line is about its file."""
    pieces: list[SourcedText] = []
    header = None
    for hunk in hunks:
        text = hunk.body if hunk.header == header else hunk.header + hunk.body
        header = hunk.header
        path = path_of(header.split("\n")) if header.startswith(FILE) else ""
        pieces.append(sourced(text, PromptSource.DIFF, path=path))
    return compose(pieces)


def newest_hunks(diff: str, most: int) -> SourcedText:
    """The last complete hunks of the diff with at most so many characters together."""
    kept: tuple[Hunk, ...] = ()
    for hunk in reversed(split_hunks(diff)):
        if len(join_hunks((hunk, *kept))) > most:
            break
        kept = (hunk, *kept)
    return join_hunks(kept)


def path_of(head: list[str]) -> str:
    """The path of the file whose part of a diff begins with these lines; the new one if it was renamed."""
    for mark in ("rename to ", "+++ ", "--- "):
        for line in head:
            if line.startswith(mark) and line != f"{mark}/dev/null":
                name = unquoted(line.removeprefix(mark).rstrip("\t"))
                return name if mark == "rename to " else name[2:]
    both = head[0].removeprefix(FILE)
    return unquoted(both[: len(both) // 2])[2:]


def unquoted(name: str) -> str:
    """The plain form of a name that git may have quoted as in C."""
    if not (name.startswith('"') and name.endswith('"')):
        return name
    plain = bytearray()
    place = 1
    for found in ESCAPE.finditer(name, 1, len(name) - 1):
        plain += name[place : found.start()].encode("utf-8", "surrogateescape")
        letter = found[1]
        code = int(letter, 8) if len(letter) > 1 else ESCAPED.get(letter, ord(letter))
        plain.append(code)
        place = found.end()
    plain += name[place:-1].encode("utf-8", "surrogateescape")
    return plain.decode("utf-8", "surrogateescape")


def _hunk_if_any(header: list[str], body: list[str]) -> list[Hunk]:
    return [Hunk(header="".join(header), body="".join(body))] if header or body else []


def _file_if_any(head: list[str], body: list[str]) -> list[FileDiff]:
    if not head:
        return []
    created = any(line.startswith(("new file ", "--- /dev/null")) for line in head)
    deleted = any(line.startswith(("deleted file ", "+++ /dev/null")) for line in head)
    notes = (DiffLine(kind="note", text=line) for line in head if line.startswith(("old mode", "new mode")))
    return [
        FileDiff(
            path=path_of(head),
            status="created" if created else "deleted" if deleted else "changed",
            lines=(*notes, *_diff_lines(body)),
        )
    ]


def _diff_lines(body: list[str]) -> Iterator[DiffLine]:
    old = new = 0
    for line in body:
        hunk = HUNK.fullmatch(line)
        if hunk is not None:
            old, new = int(hunk["old"]), int(hunk["new"])
            yield DiffLine(kind="hunk", text=hunk["rest"].strip(), old=old, new=new)
            continue
        kind = MARKS.get(line[:1], "note") if old or new else "note"
        if kind == "note":
            yield DiffLine(kind=kind, text=line)
            continue
        in_old, in_new = kind != "added", kind != "deleted"
        yield DiffLine(kind=kind, text=line[1:], old=old if in_old else None, new=new if in_new else None)
        old, new = old + in_old, new + in_new
