from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from testing.runs.memory_run import TASK_ID, memory_project, pytest_run

from clean_room_agent.artifacts.test_results import Outcome
from clean_room_agent.db.raw.passes import list_validations
from clean_room_agent.errors import ConfigError
from clean_room_agent.orchestrator.full_tests import run_baseline, unstable_tests


def green(_: Mapping[str, str]) -> dict[str, Outcome]:
    return {"t.py::a": "passed"}


def test_the_baseline_is_the_standard_for_what_follows(tmp_path: Path) -> None:
    with memory_project(tmp_path, {"a.py": ""}, green) as project:
        memory = project.open(lambda _: "")
        tests = run_baseline(memory.run)
        assert memory.run.progress.at_base is memory.run.progress.accepted is tests


def test_a_quick_command_is_compared_with_its_own_run_at_the_base(tmp_path: Path) -> None:
    with memory_project(tmp_path, {"a.py": ""}, green) as project:
        memory = project.open(lambda _: "", testing={"step_test_command": "pytest t.py"})
        tests = run_baseline(memory.run)
        assert memory.runner.commands_run == ["pytest", "pytest t.py"]
        assert memory.run.progress.accepted is not tests
        assert memory.run.progress.accepted is not None
        assert memory.run.progress.accepted.command == "pytest t.py"


def test_a_command_that_finds_no_tests_ends_the_run_and_is_on_record(tmp_path: Path) -> None:
    with memory_project(tmp_path, {"a.py": ""}, lambda _: {}) as project:
        memory = project.open(lambda _: "")
        with pytest.raises(ConfigError, match="finds no tests"):
            run_baseline(memory.run)
        rows = project.record.write(list_validations, TASK_ID)
        assert [(row.kind, row.success) for row in rows] == [("baseline", False)]


def test_untested_is_a_word_of_the_users(tmp_path: Path) -> None:
    with memory_project(tmp_path, {"a.py": ""}, lambda _: {}) as project:
        memory = project.open(lambda _: "", testing={"accept": "untested"})
        assert run_baseline(memory.run).is_empty


def test_a_resumed_run_takes_the_baseline_that_it_had(tmp_path: Path) -> None:
    with memory_project(tmp_path, {"a.py": ""}, green) as project:
        first = run_baseline(project.open(lambda _: "").run)
        again = project.open(lambda _: "", resumed=True)
        assert run_baseline(again.run) == first
        assert again.runner.commands_run == []


def test_a_test_that_comes_and_goes_is_found_by_running_it_again(tmp_path: Path) -> None:
    outcomes = iter([{"t.py::a": "failed"}, *[{"t.py::a": "passed"}] * 9])

    def flaky(_: Mapping[str, str]) -> Any:
        return next(outcomes)

    with memory_project(tmp_path, {"a.py": ""}, flaky) as project:
        memory = project.open(lambda _: "")
        commit = memory.run.commits.base
        failed = memory.runner.run_all("")
        assert unstable_tests(memory.run, failed, ("t.py::a",), commit) == ("t.py::a",)
        assert ("unstable_tests", "t.py::a") in project.events()


def test_a_test_that_fails_each_time_is_stable(tmp_path: Path) -> None:
    with memory_project(tmp_path, {"a.py": ""}, lambda _: {"t.py::a": "failed"}) as project:
        memory = project.open(lambda _: "")
        failed = pytest_run({"t.py::a": "failed"})
        changed = project.history.add({"a.py": "x"})
        found = unstable_tests(memory.run, failed, ("t.py::a",), changed)
        assert found == ()
