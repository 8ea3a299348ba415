"""The prompts for one definition at a time: written anew as a whole, or by its changed lines."""

import re

from msgspec import Struct

from clean_room_agent.llm.answers import BadAnswer, TextAnswer
from clean_room_agent.llm.prompt import KNOWN, SYSTEM, Prompt, template

CODE = re.compile(
    r"^\s*(?:(?:async\s+)?def|class|function|export|const|let|@\w|return|if|for|while)\b|[;=]\s*$|=>",
    re.MULTILINE,
)
FENCE = re.compile(r"^\s*(?:```|~~~)")


class FormInputs(Struct, frozen=True, kw_only=True):
    """A definition that has to change; texts may be empty."""

    task: str
    evidence: str
    """What the tests show now."""
    observed: str
    """What was seen when they ran."""
    path: str
    name: str
    """Qualified, of the definition."""
    code: str
    """The definition, its docstring shortened, below the first lines of what it is in."""
    fence: str
    """What frames the code, which does not occur in it."""
    related: str
    """Signatures of what it calls."""
    opening: str
    """How the answer begins."""
    language: str
    """For the fence."""
    failed: str = ""
    """An earlier answer that was tried, and what it gave."""


def read_code(text: str) -> str | BadAnswer:
    """The answer, which holds something like code."""
    if FENCE.search(text) or any(FENCE.match(line) for line in text.split("\n")) or CODE.search(text):
        return text
    return BadAnswer(kind="format", fault="the answer holds no code; write it in one block of code")


def read_blocks(text: str) -> tuple[str, str] | BadAnswer:
    """The wrong lines and the corrected ones: two blocks, or one block with both marks."""
    blocks = code_blocks(text)
    if len(blocks) >= 2:
        return blocks[0], blocks[1]
    whole = blocks[0] if blocks else text
    parts = re.split(r"^\s*(?:#|//)?\s*(?:BEFORE|AFTER)\b:?[ \t]*\n", whole, flags=re.MULTILINE)
    if len(parts) == 3 and parts[1].strip():
        return parts[1].strip("\n"), parts[2].strip("\n")
    return BadAnswer(
        kind="format", fault="two blocks of code were asked for: the lines as they are, and as they must be"
    )


def code_blocks(text: str) -> list[str]:
    """What stands between fences, each without its last line end; an unclosed one ends with the text."""
    blocks: list[str] = []
    lines: list[str] | None = None
    for line in text.split("\n"):
        if FENCE.match(line):
            if lines is None:
                lines = []
                continue
            blocks.append("\n".join(lines))
            lines = None
        elif lines is not None:
            lines.append(line)
    if lines is not None and "".join(lines).strip():
        blocks.append("\n".join(lines))
    return [block for block in blocks if block.strip()]


FUNCTION_EXAMPLE = """\
```python
def count_quokkas(pens):
    return sum(pen.quokkas for pen in pens)
```"""
LINES_EXAMPLE = """\
BEFORE:
```
(the wrong lines, copied exactly)
```
AFTER:
```
(the corrected lines)
```"""
"""Without code, which small models copy."""

FUNCTION: Prompt[FormInputs, str] = Prompt(
    name="function",
    role="coding",
    title="Write one definition anew",
    system=SYSTEM,
    template=KNOWN + template(__file__, "form") + template(__file__, "function"),
    answer=TextAnswer(read_code),
    max_answer_tokens=1024,
    example=FUNCTION_EXAMPLE,
)
LINES: Prompt[FormInputs, tuple[str, str]] = Prompt(
    name="lines",
    role="coding",
    title="Write the lines that change",
    system=SYSTEM,
    template=KNOWN + template(__file__, "form") + template(__file__, "lines"),
    answer=TextAnswer(read_blocks),
    max_answer_tokens=512,
    example=LINES_EXAMPLE,
)
