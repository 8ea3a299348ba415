"""The frames of tracebacks, as Python and pytest print them."""

import re
from collections.abc import Iterator

from clean_room_agent.artifacts.evidence import StackFrame

PYTEST_FRAME = re.compile(
    r"(?P<path>[^\s:<][^:\n]*):(?P<line>\d{1,9}): ?(?:in (?P<function>\S+)|[A-Za-z_][\w.]*)?"
)
TRACEBACK_FRAME = re.compile(
    r'\s*File "(?P<path>[^"\n]+)", line (?P<line>\d{1,9})(?:, in (?P<function>\S+))?'
)
DEFINITION = re.compile(r">?\s*(?:async )?def (\w+)")


def frames_in(text: str) -> Iterator[StackFrame]:
    """The frames, innermost first: Python prints that last. A frame of pytest's gets the function whose text stands above it."""
    found: list[StackFrame] = []
    function = ""
    for line in text.split("\n"):
        definition = DEFINITION.match(line)
        if definition and not function:
            function = definition[1]
        if match := TRACEBACK_FRAME.match(line):
            found.append(_stack_frame(match, ""))
        elif match := PYTEST_FRAME.fullmatch(line):
            found.append(_stack_frame(match, function))
            function = ""
    return reversed(found)


def words_after_frames(text: str) -> str:
    """What stands behind the last frame of a traceback and its source: the error; all of a text without frames."""
    lines = text.split("\n")
    frames = [at for at, line in enumerate(lines) if TRACEBACK_FRAME.match(line)]
    if not frames:
        return "\n".join(line.strip() for line in lines)
    rest = lines[frames[-1] + 1 :]
    start = next((at for at, line in enumerate(rest) if line and not line[0].isspace()), 0)
    return "\n".join(rest[start:])


def _stack_frame(match: re.Match[str], function: str) -> StackFrame:
    return StackFrame(path=match["path"], line=int(match["line"]), function=match["function"] or function)
