from collections.abc import Iterator
from pathlib import Path

import pytest
from testing.runs.memory_run import MemoryProject, memory_project
from testing.runs.memory_till import MemoryTill, memory_till


@pytest.fixture
def till(tmp_path: Path) -> Iterator[MemoryTill]:
    with memory_till(tmp_path) as made:
        yield made


@pytest.fixture
def project(tmp_path: Path) -> Iterator[MemoryProject]:
    """Two files, and no test."""
    with memory_project(tmp_path, {"a.py": "a = 0\n", "b.py": "b = 0\n"}, lambda _: {}) as made:
        yield made
