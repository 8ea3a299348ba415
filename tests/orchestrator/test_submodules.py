"""Submodules: empty in the worktree and said so, or brought in by `[worktree] link`."""

from pathlib import Path

import pytest
from testing import repositories
from testing.repositories import git
from testing.runs.solving import MONEY_TESTS, ONE_ATTEMPT, TILL, Project, make_project, project_at
from testing.sandboxes import installed, on_disk

__all__ = ["on_disk"]  # in the place of `tmp_path`

NEEDING = (
    MONEY_TESTS
    + """
    def test_library(self):
        self.assertEqual(open("vendor/library/value").read(), "1")
"""
)
FILES = {**TILL, "tests/test_money.py": NEEDING}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    library = repositories.make_repository(folder / "library", {"value": "1"})
    till = make_project(folder, FILES)
    git(till.top, "submodule", "-q", "add", str(library), "vendor/library")
    git(till.top, "commit", "-q", "-m", "Add library")
    return till.top


@pytest.fixture
def till(tmp_path: Path, made: Path) -> Project:
    return project_at(repositories.copy_repository(made, tmp_path / "till"), FILES)


def test_an_empty_submodule_is_said_with_the_remedy(till: Project) -> None:
    told = till.solve_scripted(None, **ONE_ATTEMPT)
    assert (told.code, told.traces) == (4, {}), told.err
    said = (
        "submodules are empty in the worktree; [worktree] link brings them in for the tests: vendor/library"
    )
    assert said in told.err
    assert "4 passed, 1 failed" in told.out


@pytest.mark.parametrize(("mode", "how"), [("none", "link"), ("bwrap", "mount")])
def test_a_linked_submodule_is_there_in_every_attempt(till: Project, mode: str, how: str) -> None:
    """Copies are in `tests/orchestrator/test_runs/test_ignored_folders.py`."""
    if mode == "bwrap":
        installed()
    key = "in_sandbox" if mode == "bwrap" else "without_sandbox"
    told = till.solve_scripted(None, sandbox={"mode": mode}, worktree={"link": ["vendor/library"], key: how})
    assert (told.code, told.traces) == (0, {}), told.err
    assert "submodules are empty" not in told.err
    assert "5 passed, 0 failed" in told.out
    assert git(till.top, "ls-tree", told.branches[0], "vendor/library").startswith("160000 commit")
