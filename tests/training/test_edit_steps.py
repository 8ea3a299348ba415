"""Edits scored by how far they come: they apply, parse, and pass the tests of the clone that they are for."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from testing.repositories import make_repository
from tests.training.test_evaluation import compared_edits, row

from clean_room_agent.cli.adapters import opened_tests
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.git.repository import Repository, open_repository
from clean_room_agent.orchestrator.run_config import SandboxConfig, TestingConfig, WorktreeConfig
from clean_room_agent.orchestrator.test_runs.worktrees import RunnerSetup
from clean_room_agent.sandbox.bubblewrap import Obstacle
from clean_room_agent.training.dataset import TrainingRow
from clean_room_agent.training.edit_steps import Clone, EditSteps
from clean_room_agent.training.evaluation import questions_of

FILES = {
    "a.py": "x = 1\ny = 2\n",
    "checks.py": """\
import unittest
import a

class Checks(unittest.TestCase):
    def test_x(self): self.assertEqual(a.x, 2)
    def test_old(self): self.assertEqual(a.y, 3)
""",
}
EDIT = '<edit file="a.py">\n<search>\nx = 1\n</search>\n<replacement>\nx = 2\n</replacement>\n</edit>'


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return open_repository(make_repository(tmp_path / "shop", FILES))


def edits(clone: Repository, named: str = "owner/shop") -> TrainingRow:
    return row(IMPLEMENT, EDIT, commit=clone.head, repo=named)


@contextmanager
def clone_with_tests(repo: Repository, tmp_path: Path, command: str) -> Iterator[Clone]:
    place = tmp_path / "cache" / "tree"
    place.parent.mkdir()
    setup = RunnerSetup(
        repo=repo,
        place=place,
        environment=dict(os.environ),
        sandbox=SandboxConfig(mode="none"),
        testing=TestingConfig(test_command=command),
        worktree=WorktreeConfig(),
        home=tmp_path,
        try_machine=lambda _: None,
        find=lambda: Obstacle(reason="", remedy=""),
    )
    with opened_tests(setup, "t") as run:
        yield Clone(repo=repo, run_tests=run)
    assert not place.exists()


@pytest.mark.parametrize(
    ("said", "worth"),
    [
        (EDIT, 1.0),
        (EDIT.replace("x = 2", "x = 3 - 1"), 1.0),
        (EDIT.replace("x = 1", "z = 1"), 0.0),
        (EDIT.replace("a.py", "b.py"), 0.0),
        (EDIT.replace("x = 2", "x = = 2"), 0.5),
    ],
)
def test_without_tests_an_edit_is_worth_that_it_applies_and_parses(
    repo: Repository, said: str, worth: float
) -> None:
    metric = EditSteps([Clone(repo=repo, why_untested="no test_command")])
    asked = questions_of(IMPLEMENT, [edits(repo)], metric)
    assert asked.limited == {"tests not run: no test_command": 1}
    assert compared_edits(asked.questions, said) == [worth]


def test_a_repository_is_found_by_its_path_too_and_its_tests_are_asked_for(repo: Repository) -> None:
    asked = questions_of(IMPLEMENT, [edits(repo, str(repo.top))])
    (limit,) = asked.limited
    assert "--clone" in limit
    assert compared_edits(asked.questions, EDIT) == [1.0]


def test_with_tests_an_edit_is_worth_most_where_nothing_fails_that_passes_with_the_right_one(
    repo: Repository, tmp_path: Path
) -> None:
    python = "python3 -m unittest -v"
    worth = {
        EDIT: 1.0,
        EDIT.replace("x = 2", "x = 3"): 2 / 3,
        EDIT.replace("x = 2", "x = = 2"): 1 / 3,
        "no": 0.0,
    }
    (repo.top / "a.py").write_text("somebody works here")
    with clone_with_tests(repo, tmp_path, f"{python} checks.py") as clone:
        metric = EditSteps([clone])
        asked = questions_of(IMPLEMENT, [edits(repo)], metric)
        assert asked.limited == {}
        assert {said: compared_edits(asked.questions, said)[0] for said in worth} == worth


def test_tests_that_tell_nothing_are_said(repo: Repository, tmp_path: Path) -> None:
    with clone_with_tests(repo, tmp_path, "false") as clone:
        asked = questions_of(IMPLEMENT, [edits(repo)], EditSteps([clone]))
        assert asked.limited == {
            "tests not run: they fail with the right answer, and the report does not say which": 1
        }
        assert compared_edits(asked.questions, EDIT) == [1.0]
