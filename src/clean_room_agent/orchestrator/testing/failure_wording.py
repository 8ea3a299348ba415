"""What a failure says, without the vocabulary of its runner."""

import re
from collections.abc import Sequence

HINT = re.compile(
    r"\s*(?:Use -v+ to (?:get|show)\b.*|Omitting \d+ identical items\b.*|Skipping \d+ identical .*|Full diff:"
    r"|\.\.\.Full output truncated.*|Diff is \d+ characters long\..*|Number of calls: .*|…|\.\.\."
    r"|\?[ \t][-+^ \t]*|\^[~^]*)"
)
"""Lines that speak of the runner's options or point at the line above."""
COMMENT = re.compile(r" // (?:Object\.is equality|deep equality|indexOf|[a-zA-Z ]{1,40})\Z")
"""What jest and vitest say of a matcher."""
CODE = re.compile(r"\bAssertionError \[ERR_ASSERTION\]")
DIFF_HEAD = re.compile(
    r"Full diff:|[-+] (?:Expected|Snapshot|Received)\b.*|\+ actual - expected.*|\+ expected - actual"
)
"""From here on, nothing but a diff follows."""
LABELLED = re.compile(
    r"(?:Expected|Received|Actual|Regex|Input)\b[^:]{0,40}:.*|Received function did not throw"
)
ABBREVIATED = re.compile(r"\.\.\.|…|\[\d+ chars\]|\bArray\(\d+\)")
ASSERTED = re.compile(r"(?:(?P<error>\w*Error): )?(?P<words>assert .*|expected .*|.* != .*|.*\bdiffer: .*)")
"""The line that compares."""
WHERE = re.compile(r"\s*\+\s+(?:where|and)\b")
"""How pytest explains a call that was compared."""
SAID = re.compile(r".* : (?P<said>.+)")
"""The test's own words, which unittest puts behind its diff."""


def telling(lines: Sequence[str], *, values_known: bool) -> list[str]:
    """Those of the lines that say what went wrong; with `values_known`, without what shows the values once more."""
    found: list[str] = []
    compared = False
    for line in lines:
        plain = CODE.sub("AssertionError", COMMENT.sub("", line.rstrip()))
        if values_known and DIFF_HEAD.fullmatch(plain.strip()):
            break
        if not plain or HINT.fullmatch(plain):
            continue
        if values_known and (LABELLED.fullmatch(plain.strip()) or (compared and not WHERE.match(plain))):
            continue
        asserted = ASSERTED.fullmatch(plain) if values_known else None
        if asserted:
            compared = True
            plain = (asserted["error"] or "") if ABBREVIATED.search(plain) else plain
        if plain:
            found.append(plain)
    said = SAID.fullmatch(lines[-1]) if compared and len(lines) > 1 else None
    found += [said["said"]] if said else []
    return found or [_shortest(line) for line in lines if line.strip()][:1]


def _shortest(line: str) -> str:
    """What is left of a line that shows abbreviated values, or heads what is shown elsewhere."""
    return "AssertionError" if ABBREVIATED.search(line) else line.strip().removesuffix(":")
