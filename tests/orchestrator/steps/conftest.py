"""A project in memory whose tests pass once its numbers are 1."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from testing.runs.memory_run import MemoryProject, memory_project

from clean_room_agent.artifacts.test_results import Outcome

FILES = {"a.py": "a = 0\n", "b.py": "b = 0\n", "c.py": "c = 1\n"}


def ones(files: Mapping[str, str]) -> dict[str, Outcome]:
    """t.py::a is about a.py, and so on."""
    return {f"t.py::{path[0]}": "passed" if "= 1" in text else "failed" for path, text in files.items()}


@pytest.fixture
def project(tmp_path: Path) -> Iterator[MemoryProject]:
    """The project, with one test that passes and two that fail."""
    with memory_project(tmp_path, FILES, ones) as made:
        yield made
