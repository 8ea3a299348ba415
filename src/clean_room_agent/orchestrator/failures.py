"""What kind of failure an attempt came to, and whether two errors say the same; no model is asked.

Messages are compared without what differs from one run to the next:

    "E  File 'till/money.py', line 7: name 'share' is not defined"
    "E  File 'till/receipt.py', line 12: name 'rest' is not defined"

are equal once paths, lines and quoted values are placeholders.
"""

import difflib
import re
from collections.abc import Sequence
from typing import Literal

from clean_room_agent.artifacts.outcomes import AttemptOutcome

Category = Literal[
    "format",
    "truncated",
    "endless",
    "untouched",
    "patch",
    "syntax",
    "import",
    "name",
    "logic",
    "timeout",
    "infrastructure",
    "wrong_tech_stack",
    "schema_mismatch",
    "api_contract_wrong",
]
"""`endless`: the answer and its repair repeated themselves or copied the prompt's example, and were closed.
`untouched`: nothing was refused but that a target of the step was left alone. The last three are never read from an
error; a diagnosis names them.
"""

BY_OUTCOME: dict[AttemptOutcome, Category] = {
    AttemptOutcome.TRUNCATED: "truncated",
    AttemptOutcome.UNREADABLE: "format",
    AttemptOutcome.NO_EDITS: "format",
    AttemptOutcome.TIMED_OUT: "timeout",
    AttemptOutcome.INFRASTRUCTURE: "infrastructure",
}
BY_MESSAGE: tuple[tuple[Category, re.Pattern[str]], ...] = (
    ("syntax", re.compile(r"\b(?:SyntaxError|IndentationError|TabError)\b|\berror TS1\d{3}\b")),
    (
        "import",
        re.compile(r"\b(?:ImportError|ModuleNotFoundError)\b|Cannot find module|ERR_MODULE_NOT_FOUND"),
    ),
    ("name", re.compile(r"\b(?:NameError|UnboundLocalError|AttributeError|ReferenceError)\b")),
)
"""The first whose pattern stands anywhere in the messages."""

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


def category_of(outcome: AttemptOutcome, messages: Sequence[str], *, tested: bool) -> Category:
    """The kind of a failed attempt; `messages` are those of its failing tests, where it was `tested`."""
    known = BY_OUTCOME.get(outcome)
    if known is not None:
        return known
    if not tested:
        return "patch"
    text = "\n".join(messages)
    return next((category for category, pattern in BY_MESSAGE if pattern.search(text)), "logic")


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
