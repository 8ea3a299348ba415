"""A project whose task the oracle can solve."""

from pathlib import Path

import pytest
from testing.runs.solving import Project, make_project


@pytest.fixture
def till(tmp_path: Path) -> Project:
    return make_project(tmp_path)
