from collections.abc import Iterator
from pathlib import Path

import pytest
from testing.runs.memory_till import MemoryTill, memory_till


@pytest.fixture
def till(tmp_path: Path) -> Iterator[MemoryTill]:
    with memory_till(tmp_path) as made:
        yield made
