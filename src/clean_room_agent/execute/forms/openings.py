"""Answers for one line that open a block. Such a line alone is no code; it means one of two things:

    asked about        answered          meant
    return s[:-n]      if not n:         what stands there, inside: it is tried without asking
                                         something else in front of it: the model is asked for the line inside

Many real faults are cases that nobody thought of, which no other text of a line handles.
"""

import re
from collections.abc import Iterable

from msgspec import Struct

from clean_room_agent.artifacts.goals import GoalTest
from clean_room_agent.execute.edits.search_replace import indentation
from clean_room_agent.execute.forms.place import Parsed
from clean_room_agent.syntax import statement_spans

STEP = "    "
"""An indentation, where the definition shows none."""
HEADER = re.compile(r"(?:if|for|while|with)\b")
ARGUMENTS = re.compile(r"""'(?:[^'\\]|\\.)+'|"(?:[^"\\]|\\.)+"|-?\d+(?:\.\d+)?""")
PLAIN = frozenset({"0", "1", "-1", "0.0", "1.0"})
"""Numbers that code compares with for reasons of its own."""


class Opening(Struct, frozen=True, kw_only=True):
    """The first line of a block in front of a line."""

    line: int
    header: str
    """With its indentation."""
    inner: str
    """The indentation of what is inside."""
    closing: str
    """The line that ends the block, with a line end before it; "" where indentation does."""

    @property
    def name(self) -> str:
        """Tells the openings of a file apart."""
        return f"block {self.line} {self.header.strip()}"

    def around(self, inside: str) -> str:
        """The block with this line in it."""
        return f"{self.header}\n{self.inner}{inside.strip()}{self.closing}"


def opening_of(parsed: Parsed, line: int, answer: str) -> Opening | None:
    """The block that an answer for the line, or for a gap before it, opens; None if it opens none, or the line does, too."""
    header = answer.strip()
    mark = ":" if parsed.nodes.indented else "{"
    if not (HEADER.match(header) and header.endswith(mark)) or "\n" in header or line > len(parsed.lines):
        return None
    if HEADER.match(parsed.lines[line - 1].strip()):
        return None
    own = indentation(parsed.lines[line - 1])
    step = "\t" if own.startswith("\t") else _indent_step(parsed)
    return Opening(
        line=line,
        header=own + header,
        inner=own + step,
        closing="" if parsed.nodes.indented else f"\n{own}}}",
    )


def with_line_inside(parsed: Parsed, opening: Opening) -> str | None:
    """The block around the line before which it was opened; None if that is not all of a statement, or stands in such a block."""
    line = opening.line
    if statement_spans(parsed.raw, parsed.path).get(line, (line, line)) != (line, line):
        return None
    before = parsed.lines[line - 2].strip() if line > 1 else ""
    return None if before == opening.header.strip() else opening.around(parsed.lines[line - 1])


def answers_only(opening: Opening, goals: Iterable[GoalTest]) -> bool:
    """Whether the block is entered only for the very value of an argument that a goal names: what is inside would answer this one
    call.
    """
    values = {found for goal in goals for found in ARGUMENTS.findall(goal.call)} - PLAIN
    return any(
        re.search(
            rf"(?:==|\bis)\s*{re.escape(value)}(?![\w.])|(?<![\w.]){re.escape(value)}\s*==", opening.header
        )
        for value in values
    )


def _indent_step(parsed: Parsed) -> str:
    """One indentation of the file: the smallest that a line has."""
    widths = [len(blanks) for row in parsed.lines if row.strip() and (blanks := indentation(row))]
    return " " * min(widths) if widths else STEP
