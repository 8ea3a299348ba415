from pathlib import Path

import pytest
from testing.repositories import make_repository

from clean_room_agent.app.plan_run import read_plan
from clean_room_agent.errors import ArtifactError
from clean_room_agent.workspace import Workspace

WRITTEN = """\
task = "Keep every cent."

[[steps]]
description = "Split."
files = ["a.py"]
"""
PARTS = """\
task = "Keep every cent."

[[parts]]
id = "p1"
description = "Split."
files = ["a.py"]
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(repo=make_repository(tmp_path / "project", {"a.py": "a = 0\n"}))


def written(workspace: Workspace, text: str) -> Path:
    file = workspace.repo / "plan.toml"
    file.write_text(text)
    return file


def test_a_plan_that_a_person_wrote_is_read(workspace: Workspace) -> None:
    source = read_plan(workspace, written(workspace, WRITTEN), edit=False)
    assert source.plan is not None
    assert [entry.path for entry in source.plan.affected_files] == ["a.py"]


def test_a_plan_that_is_to_be_edited_first_is_its_text(workspace: Workspace) -> None:
    source = read_plan(workspace, written(workspace, WRITTEN), edit=True)
    assert (source.plan, source.text) == (None, WRITTEN)


def test_parts_alone_are_no_plan_to_review(workspace: Workspace) -> None:
    with pytest.raises(ArtifactError):
        read_plan(workspace, written(workspace, PARTS), edit=False)
