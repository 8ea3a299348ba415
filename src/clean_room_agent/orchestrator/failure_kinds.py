"""What kind of failure an attempt came to, by its outcome and by what the tests say; no model is asked."""

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


def category_of(outcome: AttemptOutcome, messages: Sequence[str], *, tested: bool) -> Category:
    """The kind of a failed attempt; `messages` are those of its failing tests, where it was `tested`."""
    known = BY_OUTCOME.get(outcome)
    if known is not None:
        return known
    if not tested:
        return "patch"
    text = "\n".join(messages)
    return next((category for category, pattern in BY_MESSAGE if pattern.search(text)), "logic")
