"""A model for tests that describes files, and keeps in mind which it was asked about."""

import json
import re
from collections.abc import Mapping

from testing.runs.solving import PROBE, Spoil
from testing.servers.ollama_script import Answer, ChatCall

PATH = re.compile(r"^## File\n(.+) \(\w+(?:, \d+ lines)?\)$", re.MULTILINE)


def description(path: str) -> str:
    """What the model says of the file at `path` unless it is told otherwise."""
    return json.dumps(
        {
            "complexity_notes": "",
            "concepts": ["Cents", "sums"],
            "domain": "Money",
            "module": path.rpartition("/")[0] or "top",
            "public_api_surface": ["split"],
            "purpose": f"Do what {path} does.",
        }
    )


class DescribingModel:
    """Describes each file; `spoiled` names, by path, what it answers in place of that, each time."""

    def __init__(self, spoiled: Mapping[str, Answer | str | Spoil] | None = None) -> None:
        self.spoiled = dict(spoiled or {})
        self.asked: list[str] = []
        """Paths, in order of asking."""
        self.prompts: list[str] = []

    def __call__(self, call: ChatCall) -> Answer | str:
        """The answer to one call."""
        if call.prompt.startswith(PROBE):
            return "x"
        found = PATH.search(call.prompt)
        assert found is not None, call.prompt
        path = found[1]
        self.asked.append(path)
        self.prompts.append(call.prompt)
        answer = self.spoiled.get(path, description(path))
        return answer(call, description(path)) if callable(answer) else answer
