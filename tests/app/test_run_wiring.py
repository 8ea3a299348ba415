from pathlib import Path
from typing import Any

import pytest
from testing.client.model_client import models_config
from testing.runs.memory_commits import REPOSITORY
from testing.runs.solving import Project

from clean_room_agent.app.run_wiring import _prompts_go_to, runner_setup, task_of
from clean_room_agent.app.settings import Settings
from clean_room_agent.artifacts.goals import GivenEvidence
from clean_room_agent.artifacts.outcomes import TimeKind
from clean_room_agent.db.connection import read_record
from clean_room_agent.db.raw.runs import find_task, list_time_spans
from clean_room_agent.orchestrator.task import Hint, PlanGiven


def settings(**tables: Any) -> Settings:
    given = {"solve": {"max_attempts": 3, "max_refinement_loops": 1}, "testing": {"test_command": "pytest"}}
    return Settings(source="config.toml", data={**given, **tables})


def test_a_task_has_the_configured_limits_and_the_users_hints() -> None:
    evidence = GivenEvidence(files=("a.py",))
    given = PlanGiven(hints=(Hint(text="use divmod"),), evidence=evidence)
    task = task_of(settings(orchestrator={"max_calls": 7}), "id", "Fix it.", given)
    assert (task.task_id, task.words) == ("id", "Fix it.")
    assert (task.limits.orchestrator.max_calls, task.limits.solve.max_attempts) == (7, 3)
    assert (task.given, task.limits.evidence.keep) == (evidence, True)
    assert task.hints.begin("id:meta_plan", known=False) == ("use divmod",)


def test_tests_run_as_configured_with_the_programs_own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_VARIABLE", "x")
    setup = runner_setup(settings(sandbox={"mode": "none"}), REPOSITORY, Path("/place"))
    assert setup.testing.test_command == "pytest"
    assert setup.sandbox.mode == "none"
    assert setup.environment["SOME_VARIABLE"] == "x"


@pytest.mark.parametrize(
    ("url", "allow_remote", "where"),
    [
        ("http://127.0.0.1:11434", False, ""),
        ("http://127.0.0.1:11434", True, "this machine's server, and wherever it forwards them"),
        ("http://models.example:11434", True, "models.example"),
    ],
)
def test_the_first_line_says_where_prompts_go(url: str, allow_remote: bool, where: str) -> None:
    assert _prompts_go_to(models_config(url, allow_remote=allow_remote)) == where


def test_what_a_run_does_is_timed(till: Project, solved: str) -> None:
    with read_record(till.top) as conn:
        spans = list_time_spans(conn, find_task(conn, solved))
    assert spans[0].kind is TimeKind.START
    assert all(row.began_at <= row.ended_at for row in spans)
    assert {(row.kind.value, row.detail) for row in spans} == {
        ("start", ""),
        ("preflight", ""),
        ("git", "open the repository"),
        ("index", ""),
        ("model_load", "thinker:4b"),
        ("git", "snapshot"),
        ("git", "worktree"),
        ("sandbox", "setup"),
        ("sandbox", "copied folders"),
        ("tests", "baseline"),
        ("tests", "looking for goal tests"),
        ("git", "checkout"),
        ("index_copy", "wait for the index"),
        ("index_copy", "follow the commit"),
        ("retrieval", "meta_plan"),
        ("retrieval", "impl:p1:s1"),
        ("git", "commit"),
        ("tests", ""),
        ("git", "branch"),
        ("git", "worktree removal"),
    }
