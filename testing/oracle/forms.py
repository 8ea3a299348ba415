"""What the oracle answers where one definition is asked for, whole or by its lines, or the text of a gap."""

import re
from collections.abc import Mapping
from difflib import SequenceMatcher

from clean_room_agent.execute.edits.definitions import definitions
from clean_room_agent.training.gold_edits import GoldFile

PLACE = re.compile(r"^## Code to change\n(\S+) in (.+)$", re.MULTILINE)
UNSHOWN = "The code that has to change is not shown to me."
MOST_LINES = 8
"""Of a gap."""


def function_for(files: Mapping[str, GoldFile], prompt: str) -> str:
    """The definition that the prompt asks for, as the commit leaves it."""
    found = PLACE.search(prompt)
    after = None if found is None else _definition(files.get(found[2]), found[1], after=True)
    return UNSHOWN if after is None else f"```\n{after}\n```"


def lines_for(files: Mapping[str, GoldFile], prompt: str) -> str:
    """The first lines of the definition that the commit changes, before and after it."""
    found = PLACE.search(prompt)
    if found is None:
        return UNSHOWN
    before = _definition(files.get(found[2]), found[1], after=False)
    after = _definition(files.get(found[2]), found[1], after=True)
    if before is None or after is None or before == after:
        return UNSHOWN
    old, new = before.split("\n"), after.split("\n")
    _, first, last, start, end = next(
        code for code in SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes() if code[0] != "equal"
    )
    if first == last:  # something is new: the line above it is copied along
        first, start = first - 1, start - 1
    left, right = "\n".join(old[first:last]), "\n".join(new[start:end])
    return f"BEFORE:\n```\n{left}\n```\nAFTER:\n```\n{right}\n```"


def text_of_gap(files: Mapping[str, GoldFile], gap: tuple[str, str]) -> str:
    """What the commit has between the last code before the gap and the first behind it; "" if it has no such place."""
    *above, lead = gap[0].split("\n")
    rest, *below = gap[1].split("\n")
    last = next((line.strip() for line in reversed(_without_documents(above)) if _is_code(line)), "")
    behind = next((line.strip() for line in below if _is_code(line)), "")
    for file in files.values():
        lines = (file.after or "").split("\n")
        first = behind if behind in map(str.strip, lines) else ""  # a test may have been put behind the code
        for at, line in enumerate(lines):
            if line.strip() != last:
                continue
            for size in range(1, MOST_LINES):
                end = at + 1 + size
                following = next((one.strip() for one in lines[end:] if one.strip()), "")
                text = "\n".join(lines[at + 1 : end])
                ends = following == first or (not first and end <= len(lines))
                if (
                    ends
                    and text.startswith(lead)
                    and text.endswith(rest)
                    and len(text) >= len(lead) + len(rest)
                ):
                    return text[len(lead) : len(text) - len(rest)]
    return ""


def _without_documents(lines: list[str]) -> list[str]:
    """The lines that are in no docstring, which may have been put there."""
    kept: list[str] = []
    inside = False
    for line in lines:
        marks = line.count('"""')
        if not marks and not inside:
            kept.append(line)
        inside ^= marks % 2 == 1
    return kept


def _is_code(line: str) -> bool:
    return bool(line.strip()) and not line.strip().startswith(("#", "//"))


def _definition(file: GoldFile | None, name: str, *, after: bool) -> str | None:
    text = None if file is None else file.after if after else file.before
    if file is None or text is None:
        return None
    return next(
        (text[one.start : one.end] for one in definitions(file.path, text) if one.symbol == name), None
    )
