"""Tiny projects whose tests are run for real, and the run of them."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from testing.patience import PATIENCE
from tests.orchestrator.testing.tiny_project import PYTEST, Runner, Write

from clean_room_agent.orchestrator.testing import test_commands
from clean_room_agent.orchestrator.testing.results import TestRun
from clean_room_agent.orchestrator.testing.run import run_tests
from clean_room_agent.orchestrator.testing.test_commands import runs_node_tests


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    return folder


@pytest.fixture
def write(project: Path) -> Write:
    def write(files: Mapping[str, str]) -> None:
        for name, text in files.items():
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_text(text, encoding="utf-8")

    return write


@pytest.fixture
def run(project: Path, tmp_path: Path) -> Runner:
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
        heard: Callable[[bytes], None] | None = None,
    ) -> TestRun:
        node_tests = runs_node_tests(command, "")
        env = test_commands.test_environment(inherited, project, project, report, node_tests=node_tests)
        return run_tests(
            command, cwd=project, env=env, timeout=timeout, report=report, bound=bound, heard=heard
        )

    return run
