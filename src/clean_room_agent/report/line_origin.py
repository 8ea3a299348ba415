"""Which of a run's accepted changes wrote a line of its result: from the recorded diffs alone."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clean_room_agent.execute.edits.parse import parse_edits

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
HEADER = "diff --git "
ESCAPES = {"\\": "\\\\", '"': '\\"', "\t": "\\t", "\n": "\\n"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LineOrigin:
    """Where a line comes from. Lines are 1-based."""

    change: int | None
    """Position of the diff that wrote it; None where it stood there before the first."""
    line: int
    """Its number in the file as that diff left it, or as it was before the first."""
    text: str | None
    """None where no diff shows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hunk:
    old_start: int
    old_count: int
    new_start: int
    new_count: int
    body: tuple[str, ...]
    """Lines with their mark (blank, + or -)."""


def find_origin(diffs: Sequence[str], path: str, line: int) -> LineOrigin:
    """The change among `diffs` (each against the state before it, oldest first) that wrote line `line` of the last state."""
    text: str | None = None
    for number in range(len(diffs) - 1, -1, -1):
        added, line, seen = _step_back(diffs[number], path, line)
        text = seen if text is None else text
        if added:
            return LineOrigin(change=number, line=line, text=text)
    return LineOrigin(change=None, line=line, text=text)


def touches(diff: str, path: str) -> bool:
    """Whether the diff changes the file."""
    heads = _heads(path)
    return any(line in heads for line in diff.split("\n") if line.startswith(HEADER))


def of_file(diff: str, path: str) -> str:
    """The part of the diff that changes the file; "" where it does not."""
    heads = _heads(path)
    kept: list[str] = []
    inside = False
    for line in diff.split("\n"):
        if line.startswith(HEADER):
            inside = line in heads
        if inside:
            kept.append(line)
    return "\n".join(kept).rstrip("\n")


def edit_that_wrote(answer: str, path: str, text: str) -> int | None:
    """The 0-based position of the answer's edit of `path` whose new text holds the line, its indentation aside."""
    edits = parse_edits(answer)
    if not isinstance(edits, tuple):
        return None
    for index, edit in enumerate(edits):
        written = (line.strip() for line in edit.replacement.split("\n"))
        if edit.file_path == path and text.strip() in written:
            return index
    return None


def _step_back(diff: str, path: str, line: int) -> tuple[bool, int, str | None]:
    """Whether `diff` added the line, its number (after the diff if it did, before it otherwise), its text if shown."""
    shift = 0
    for hunk in _hunks(diff, path):
        if line < hunk.new_start:
            break
        if line < hunk.new_start + hunk.new_count:
            return _inside(hunk, line)
        shift += hunk.new_count - hunk.old_count
    return False, line - shift, None


def _inside(hunk: _Hunk, line: int) -> tuple[bool, int, str | None]:
    old, new = hunk.old_start, hunk.new_start
    for entry in hunk.body:
        mark, text = entry[:1], entry[1:]
        if mark != "-" and new == line:
            return mark == "+", new if mark == "+" else old, text
        old += mark != "+"
        new += mark != "-"
    return False, old, None


def _hunks(diff: str, path: str) -> Iterator[_Hunk]:
    lines = of_file(diff, path).split("\n")
    place = 0
    while place < len(lines):
        match = HUNK.match(lines[place])
        place += 1
        if match is None:
            continue
        old_start, old_count, new_start, new_count = (
            1 if number is None else int(number) for number in match.groups()
        )
        body: list[str] = []
        old_left, new_left = old_count, new_count
        while place < len(lines) and (old_left > 0 or new_left > 0):
            mark = lines[place][:1]
            if mark != "\\":
                body.append(lines[place])
                old_left -= mark != "+"
                new_left -= mark != "-"
            place += 1
        yield _Hunk(
            old_start=old_start,
            old_count=old_count,
            new_start=new_start,
            new_count=new_count,
            body=tuple(body),
        )


def _heads(path: str) -> tuple[str, str]:
    """The first line of a file's diff, as git writes it without renames; the second for names that it has to quote."""
    quoted = "".join(ESCAPES.get(letter, letter) for letter in path)
    return f"{HEADER}a/{path} b/{path}", f'{HEADER}"a/{quoted}" "b/{quoted}"'
