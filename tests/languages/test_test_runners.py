"""What holds for each runner in the list."""

from pathlib import Path

import pytest

from clean_room_agent.languages.repository_files import RepositoryFiles
from clean_room_agent.languages.test_names import files_meant, is_of_file
from clean_room_agent.languages.test_runner import EndedCommand, ReportRequest, TestRunner
from clean_room_agent.languages.test_runners import HOLDER, TEST_RUNNERS, runner_named

EACH = pytest.mark.parametrize("runner", TEST_RUNNERS, ids=lambda runner: runner.name)


def test_each_runner_is_found_by_its_name() -> None:
    assert [runner_named(runner.name) for runner in TEST_RUNNERS] == list(TEST_RUNNERS)
    assert runner_named("unknown") is None


@EACH
def test_where_nothing_tells_of_a_runner_it_finds_nothing(runner: TestRunner, tmp_path: Path) -> None:
    ended = EndedCommand(
        command="make check", returncode=0, text="all good", report=tmp_path / "r.xml", cwd=tmp_path
    )
    assert runner.detect(RepositoryFiles(tmp_path, ("README", "src/lib.rs"))) == ""
    assert runner.read(ended) is runner.read_printed(ended) is None
    assert runner.asked(ended.command) == ended.command
    assert runner.only(ended.command, ("a",)) is None
    assert list(runner.frames(ended.text)) == []


@EACH
def test_what_asks_for_reports_keeps_what_the_user_set(runner: TestRunner, tmp_path: Path) -> None:
    given = {"NODE_OPTIONS": "--no-warnings", "PYTEST_ADDOPTS": "-x", "PATH": "/bin"}
    request = ReportRequest(command="node --test", report=tmp_path / "r.xml", guard=tmp_path / "guard")
    asked = runner.environment(given, request)
    assert all(value.startswith(f"{given.get(name, '')} ") for name, value in asked.items())
    again = runner.environment({**given, **asked}, request) if runner.name != "pytest" else {}
    assert again == {}, "asked once, whoever else asks in the same way"


@pytest.mark.parametrize("name", ["tests/test_a.py", "web/a.test.tsx", "till/money_test.go"])
def test_a_file_that_could_not_be_loaded_is_known_by_its_name(name: str) -> None:
    assert is_of_file(name)
    assert HOLDER.search(name)
    assert files_meant(name) == (name,)
