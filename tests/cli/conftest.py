"""A small project whose task the oracle can solve, and a server that answers `cra check` too."""

import json
import shutil
from pathlib import Path

import pytest
from tests.fakes.ollama_script import Answer, ChatCall
from tests.fakes.repositories import copy_repository
from tests.fakes.solving import Project, Script, make_project, serving

from clean_room_agent.cli.check import CHECK_PROMPT, VERDICT_PROMPT


@pytest.fixture
def till(tmp_path: Path) -> Project:
    return make_project(tmp_path)


@pytest.fixture
def answers(till: Project) -> "Knowing":
    return Knowing(Script(till.oracle))


class Knowing:
    """Answers as the script does, and gives the number of `cra check` back."""

    def __init__(self, script: Script) -> None:
        self._script = script

    def __call__(self, call: ChatCall) -> Answer | str:
        if call.title == VERDICT_PROMPT.title:
            return "yes"
        return json.dumps({"number": 7}) if call.title == CHECK_PROMPT.title else self._script(call)


@pytest.fixture(scope="session")
def solved_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A repository with a complete run, and the run's id."""
    project = make_project(tmp_path_factory.mktemp("solved"))
    with serving(project) as server:
        told = project.solve(server, "--json")
    assert told.code == 0, told.err
    return project.top, json.loads(told.out)["task_id"]


@pytest.fixture
def solved(till: Project, solved_once: tuple[Path, str]) -> str:
    """The id of a complete run of `till`, whose server is gone: a copy of one made elsewhere."""
    made, task_id = solved_once
    shutil.rmtree(till.top)
    copy_repository(made, till.top)
    return task_id
