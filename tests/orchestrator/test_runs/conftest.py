"""Tiny projects whose tests are run for real, and the run of them."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from testing.patience import PATIENCE
from tests.orchestrator.test_runs.tiny_project import PYTEST, Runner, RunOnce, Write

from clean_room_agent.orchestrator.test_runs import test_commands
from clean_room_agent.orchestrator.test_runs.command_runner import run_tests
from clean_room_agent.orchestrator.test_runs.results import TestRun


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def run_once(tmp_path_factory: pytest.TempPathFactory) -> RunOnce:
    """The run of a command on a project of these files, which is made once for all who ask for it."""
    known: dict[tuple[str, tuple[tuple[str, str], ...]], TestRun] = {}

    def run_once(command: str, files: Mapping[str, str]) -> TestRun:
        key = (command, tuple(files.items()))
        if key not in known:
            folder = tmp_path_factory.mktemp("once")
            project = folder / "tree"
            write_files(project, files)
            known[key] = runner_of(project, folder)(command)
        return known[key]

    return run_once


def write_files(project: Path, files: Mapping[str, str]) -> None:
    """The files stand in the project."""
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text, encoding="utf-8")


@pytest.fixture
def write(project: Path) -> Write:
    return lambda files: write_files(project, files)


@pytest.fixture
def run(project: Path, tmp_path: Path) -> Runner:
    return runner_of(project, tmp_path)


def runner_of(project: Path, tmp_path: Path) -> Runner:
    """Runs commands in `project`; what they leave is in `tmp_path`."""
    report = tmp_path / "run" / "report.xml"
    inherited = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    inherited["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # tiny projects start quicker without our plugins
    # A pytest deletes the temporary folders of the runs before it at its end, and one with xdist always has such folders:
    # in the usual place those are the large ones of whoever runs these tests, which took longer than a test may.
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    inherited["PYTEST_DEBUG_TEMPROOT"] = str(temporary)

    def run(
        command: str = PYTEST,
        *,
        timeout: float = PATIENCE,
        bound: int = 1_000_000,
    ) -> TestRun:
        env = test_commands.test_environment(inherited, project, project, report, command=command)
        return run_tests(command, cwd=project, env=env, timeout=timeout, report=report, bound=bound)

    return run
