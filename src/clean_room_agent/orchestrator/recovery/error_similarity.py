"""Whether two errors say the same: their messages compared without what differs from one run to the next.

    "E  File 'till/money.py', line 7: name 'share' is not defined"
    "E  File 'till/receipt.py', line 12: name 'rest' is not defined"

are equal once paths, lines and quoted values are placeholders.
"""

import difflib
import re

MOST_COMPARED = 500
"""Characters of a message: the comparison's cost grows with their square."""
PLACEHOLDERS = (
    (re.compile(r"""(?<!\w)'(?:[^'\\\n]|\\.)*'(?!\w)|"(?:[^"\\\n]|\\.)*"|`[^`\n]*`"""), "<value>"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "<address>"),
    (
        re.compile(r"\b(?:\d{4}-\d\d-\d\d[T ])?\d{1,2}:\d\d:\d\d(?:\.\d+)?\b|\b\d{4}-\d\d-\d\d\b"),
        "<time>",
    ),
    (re.compile(r"\b\d+(?:\.\d+)?\s?(?:ms|s|sec|seconds?|minutes?)\b"), "<time>"),
    (re.compile(r"(?:[\w.@~+-]*/)+[\w.@+-]+|\b[\w-]+\.(?:pyi?|[cm]?[jt]sx?)\b"), "<path>"),
    (re.compile(r"\blines? \d+(?:-\d+)?|(?<=>):\d+(?::\d+)?"), "<line>"),
)
"""In this order: a quoted path is a value."""


def normalised(message: str) -> str:
    """The message in one line, with placeholders for quoted values, addresses, times, paths and line numbers."""
    for pattern, placeholder in PLACEHOLDERS:
        message = pattern.sub(placeholder, message)
    return " ".join(message.split())


def likeness(first: str, second: str) -> float:
    """How much of the two messages, normalised, is the same: 0 to 1 (1 for equal ones)."""
    one, other = normalised(first)[:MOST_COMPARED], normalised(second)[:MOST_COMPARED]
    if one == other:
        return 1.0
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()
