"""Answers for the project of `solving` that are wrong, cut off, or right only where a step is small."""

import json

from testing.runs.solving import TILL, edit
from testing.servers.ollama_script import Answer, ChatCall

SPLIT = "    share = cents // people\n    return [share] * people"
WRONG = edit(SPLIT, "    return [cents]")
ADVICE = json.dumps(
    {"analysis": "a", "category": "logic", "confidence": 90, "decision": "rollback_provider", "hint": ""}
)
SERVED = ("coder:3b", "thinker:4b", "coder:14b", "thinker:70b")
"""The tags of models that the server has."""
TOTAL = str(TILL["till/receipt.py"]).replace("total: ", "sum: ")
"""A second file that the task may change."""


def cut(_: ChatCall, right: str) -> Answer:
    """The right answer, cut off in its middle."""
    return Answer(text=right[: len(right) // 2], done_reason="length")


def cut_unless_small(call: ChatCall, right: str) -> Answer | str:
    """Cut off where the step has more than one file."""
    files = call.prompt.rpartition("\nFiles: ")[2].split("\n")[0]
    return cut(call, right) if ", " in files else right
