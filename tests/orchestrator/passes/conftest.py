from collections.abc import Iterator
from pathlib import Path

import pytest
from testing.runs.memory_run import MemoryProject, memory_project

FILES = {"a.py": "a = 0\n", "b.py": "b = 0\n", "tests/test_a.py": "import a\n"}


@pytest.fixture
def project(tmp_path: Path) -> Iterator[MemoryProject]:
    with memory_project(tmp_path, FILES, lambda _: {"t.py::a": "failed"}) as made:
        yield made
