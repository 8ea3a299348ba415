"""A small project whose task the oracle can solve, and a server that answers `cra check` too."""

import json
from pathlib import Path

import pytest
from testing.runs.solving import Project, Script
from testing.runs.till import indexed, solved, solved_once, till
from testing.servers.ollama_script import Answer, ChatCall
from tests.cli.seeded_shop import seeded_once, shop
from tests.report.scripted_solve import solved_sample

from clean_room_agent.app.self_check import CHECK_PROMPT, VERDICT_PROMPT

__all__ = ["indexed", "seeded_once", "shop", "solved", "solved_once", "till"]


@pytest.fixture
def answers(till: Project) -> "Knowing":
    return Knowing(Script(till.oracle))


@pytest.fixture(scope="session")
def sample() -> tuple[Path, str]:
    """The demo's project, and the run that solved it with a step that failed at first; neither is changed."""
    return solved_sample()


class Knowing:
    """Answers as the script does, and gives the number of `cra check` back."""

    def __init__(self, script: Script) -> None:
        self._script = script

    def __call__(self, call: ChatCall) -> Answer | str:
        if call.title == VERDICT_PROMPT.title:
            return "yes"
        return json.dumps({"number": 7}) if call.title == CHECK_PROMPT.title else self._script(call)
