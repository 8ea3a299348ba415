from pathlib import Path
from typing import Any

import pytest
from testing.client.model_client import models_config
from testing.runs.memory_run import REPOSITORY

from clean_room_agent.app.run_wiring import _prompts_go_to, runner_setup, task_of
from clean_room_agent.app.settings import Settings
from clean_room_agent.orchestrator.task import Hint


def settings(**tables: Any) -> Settings:
    given = {"solve": {"max_attempts": 3, "max_refinement_loops": 1}, "testing": {"test_command": "pytest"}}
    return Settings(source="config.toml", data={**given, **tables})


def test_a_task_has_the_configured_limits_and_the_users_hints() -> None:
    task = task_of(settings(orchestrator={"max_calls": 7}), "id", "Fix it.", (Hint(text="use divmod"),))
    assert (task.task_id, task.words) == ("id", "Fix it.")
    assert (task.limits.orchestrator.max_calls, task.limits.solve.max_attempts) == (7, 3)
    assert task.hints.begin("id:meta_plan", known=False) == ("use divmod",)


def test_tests_run_as_configured_with_the_programs_own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_VARIABLE", "x")
    setup = runner_setup(settings(sandbox={"mode": "none"}), REPOSITORY, Path("/place"))
    assert setup.sandbox_inputs.testing.test_command == "pytest"
    assert setup.sandbox_inputs.config.mode == "none"
    assert setup.environment["SOME_VARIABLE"] == "x"


@pytest.mark.parametrize(
    ("url", "allow_remote", "where"),
    [
        ("http://127.0.0.1:11434", False, ""),
        ("http://127.0.0.1:11434", True, "this machine's server, and wherever it sends them on"),
        ("http://models.example:11434", True, "models.example"),
    ],
)
def test_the_first_line_says_where_prompts_go(url: str, allow_remote: bool, where: str) -> None:
    assert _prompts_go_to(models_config(url, allow_remote=allow_remote)) == where
