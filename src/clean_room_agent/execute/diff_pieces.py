"""A unified diff in pieces that can be left out one by one."""

import re
from dataclasses import dataclass

HUNK_START = re.compile(r"@@ ")
FILE_START = re.compile(r"diff --git ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """One hunk with the header of its file; a file without hunks (a rename, a mode) is one with an empty body."""

    header: str
    body: str

    @property
    def name(self) -> str:
        """What the log calls it."""
        return f"{self.header.split(chr(10), 1)[0]} {self.body.split(chr(10), 1)[0]}".strip()


def split_hunks(diff: str) -> tuple[Hunk, ...]:
    """The hunks of a git diff, in order; `join_hunks` gives the diff back."""
    hunks: list[Hunk] = []
    header: list[str] = []
    body: list[str] = []
    for line in diff.splitlines(keepends=True):
        if FILE_START.match(line):
            hunks += _hunk(header, body)
            header, body = [line], []
        elif HUNK_START.match(line):
            hunks += _hunk(header, body) if body else []
            body = [line]
        else:
            (body or header).append(line)
    return (*hunks, *_hunk(header, body))


def join_hunks(hunks: tuple[Hunk, ...]) -> str:
    """The hunks as a diff, each file's header once."""
    pieces: list[str] = []
    header = None
    for hunk in hunks:
        if hunk.header != header:
            pieces.append(hunk.header)
            header = hunk.header
        pieces.append(hunk.body)
    return "".join(pieces)


def newest_hunks(diff: str, most: int) -> str:
    """The last whole hunks of the diff that have at most so many characters together."""
    kept: tuple[Hunk, ...] = ()
    for hunk in reversed(split_hunks(diff)):
        if len(join_hunks((hunk, *kept))) > most:
            break
        kept = (hunk, *kept)
    return join_hunks(kept)


def _hunk(header: list[str], body: list[str]) -> list[Hunk]:
    return [Hunk(header="".join(header), body="".join(body))] if header or body else []
