"""Finds which of a run's accepted changes wrote a line of its result, like `git blame`, from the recorded diffs."""

from collections.abc import Sequence

from msgspec import Struct

from clean_room_agent.unified_diff import diff_of_file


class LineOrigin(Struct, frozen=True, kw_only=True):
    """Where a line comes from. Lines are 1-based."""

    change: int | None
    """Position of the diff that wrote it; None if it was there before the first."""
    line: int
    """Its number in the file as that diff left it, or as it was before the first."""
    text: str | None
    """None if no diff shows it."""


def find_origin(diffs: Sequence[str], path: str, line: int) -> LineOrigin:
    """The change among `diffs` (each against the state before it, oldest first) that wrote line `line` of the last state."""
    text: str | None = None
    for number in range(len(diffs) - 1, -1, -1):
        added, line, seen = _step_back(diffs[number], path, line)
        text = seen if text is None else text
        if added:
            return LineOrigin(change=number, line=line, text=text)
    return LineOrigin(change=None, line=line, text=text)


def _step_back(diff: str, path: str, line: int) -> tuple[bool, int, str | None]:
    """Whether `diff` added the line, its number (after the diff if it did, before it otherwise), its text if shown."""
    changed = diff_of_file(diff, path)
    shift = 0
    for entry in () if changed is None else changed.lines:
        if entry.kind == "hunk":
            # Of a hunk that only deletes, git gives the line after which it stands.
            if entry.new is not None and line < entry.new:
                break
        elif entry.new == line:
            return entry.kind == "added", line if entry.old is None else entry.old, entry.text
        elif entry.new is None or entry.new < line:
            shift += (entry.kind == "added") - (entry.kind == "deleted")
    return False, line - shift, None
