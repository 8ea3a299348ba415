"""The frames of stacks, as V8 and vitest print them."""

import re
from collections.abc import Iterator

from clean_room_agent.artifacts.evidence import StackFrame

STACK_FRAME = re.compile(
    r"\s+(?:at |❯ )(?:async )?(?:(?P<function>[^\s()]+)(?: \[as \S+\])? )?"  # noqa: RUF001 - vitest's arrow
    r"\(?(?:file://)?(?P<path>(?:node:)?[^\s():]+):(?P<line>\d{1,9}):\d+\)?"
)


def frames_in(text: str) -> Iterator[StackFrame]:
    """The frames, innermost first, as they are printed."""
    for line in text.split("\n"):
        if match := STACK_FRAME.fullmatch(line):
            yield StackFrame(path=match["path"], line=int(match["line"]), function=match["function"] or "")
