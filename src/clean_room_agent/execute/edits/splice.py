"""Replacing a span of a text so that line ends and the lines around it stay as they are."""

from dataclasses import dataclass

from clean_room_agent.execute.edits.match import Shift


@dataclass(frozen=True, slots=True, kw_only=True)
class Splice:
    """`text` in place of the characters `start..end`."""

    start: int
    end: int
    text: str

    def applied(self, whole: str) -> str:
        """`whole` with the span replaced."""
        return whole[: self.start] + self.text + whole[self.end :]

    def core(self, whole: str) -> "Splice":
        """The same change without what is equal at both ends: the characters that really change."""
        old = whole[self.start : self.end]
        limit = min(len(old), len(self.text))
        head = 0
        while head < limit and old[head] == self.text[head]:
            head += 1
        tail = 0
        while tail < limit - head and old[-1 - tail] == self.text[-1 - tail]:
            tail += 1
        return Splice(
            start=self.start + head, end=self.end - tail, text=self.text[head : len(self.text) - tail]
        )


def fitted(whole: str, start: int, end: int, text: str) -> Splice:
    """The replacement of a span, in the line ends of the lines it stands on; whole lines replaced by nothing go."""
    if not text and _is_line_start(whole, start) and _is_line_end(whole, end):
        following = whole.find("\n", end)
        if following >= 0:
            return Splice(start=start, end=following + 1, text="")
        preceding = start - 1 if start else 0
        if preceding and whole[preceding - 1] == "\r":
            preceding -= 1
        return Splice(start=preceding, end=end, text="")
    return Splice(start=start, end=end, text=_with_line_ends(whole, start, end, text))


def reindented(text: str, old: str) -> str:
    """A symbol's new source, moved to the indentation of its old source.

    Where only the first line lost its indentation (the others stand as deep as the old ones), only that one moves.
    """
    first, old_first = indentation(text), indentation(old)
    if first == old_first:
        return text
    depth, old_depth = _depth_below(text), _depth_below(old)
    if not first and depth is not None and depth == old_depth and depth >= len(old_first):
        return old_first + text.lstrip("\n")
    if old_first.endswith(first):
        shift = Shift(added=old_first.removesuffix(first))
    elif first.endswith(old_first):
        shift = Shift(removed=first.removesuffix(old_first))
    else:
        return text
    moved = shift.applied(text)
    return text if moved is None else moved


def indentation(text: str) -> str:
    """The blanks that begin the first line that is not blank."""
    line = next((line for line in text.split("\n") if line.strip()), "")
    return line[: len(line) - len(line.lstrip())]


def _depth_below(text: str) -> int | None:
    """The least indentation of the lines below the head of a definition, which stands below its decorators."""
    lines = [line for line in text.split("\n") if line.strip()]
    head = next((number for number, line in enumerate(lines) if not line.lstrip().startswith("@")), 0)
    return min((len(line) - len(line.lstrip()) for line in lines[head + 1 :]), default=None)


def _with_line_ends(whole: str, start: int, end: int, text: str) -> str:
    r"""`text` with `\r\n` where every line that the span touches ends so (files that mix line ends keep both)."""
    if "\r\n" not in whole or "\n" not in text:
        return text
    last = whole.find("\n", end)
    touched = whole[start : last + 1 if last >= 0 else len(whole)]
    if "\n" not in touched or touched.count("\r\n") != touched.count("\n"):
        return text
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _is_line_start(whole: str, offset: int) -> bool:
    return offset == 0 or whole[offset - 1] == "\n"


def _is_line_end(whole: str, offset: int) -> bool:
    return offset == len(whole) or whole[offset] == "\n" or whole.startswith("\r\n", offset)
