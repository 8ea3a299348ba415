"""A repository to change."""

from pathlib import Path

import pytest
from testing.repositories import make_repository

from clean_room_agent.git.repository import Repository, open_repository


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return open_repository(
        make_repository(tmp_path / "repo", {"a.py": "1\n2\n3\n", "b.py": "b\n", "c.py": "c\n"})
    )
