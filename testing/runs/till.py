"""Fixtures that share the project `till`: a small one whose task the oracle can solve, as it is and with a complete run."""

import atexit
import functools
import json
import shutil
import tempfile
from pathlib import Path

import pytest

from testing.repositories import TEMPORARY, copy_repository
from testing.runs.solving import TILL, Project, make_project, project_at, serving


@pytest.fixture
def till(tmp_path: Path) -> Project:
    return make_project(tmp_path)


@pytest.fixture
def indexed(tmp_path: Path) -> Project:
    """`till` with an index."""
    top = copy_repository(_indexed(), tmp_path / "till")
    return project_at(top, TILL)


@functools.cache
def _indexed() -> Path:
    project = make_project(_folder("cra-indexed-"))
    code, _, err = project.run_here("index")
    assert code == 0, err
    return project.top


@pytest.fixture(scope="session")
def solved_once() -> tuple[Path, str]:
    """A repository with a complete run, and the run's id."""
    return _solved()


@functools.cache
def _solved() -> tuple[Path, str]:
    project = make_project(_folder("cra-solved-"))
    with serving(project) as server:
        told = project.solve(server, "--json")
    assert told.code == 0, told.err
    return project.top, json.loads(told.out)["task_id"]


def _folder(prefix: str) -> Path:
    """It goes when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=TEMPORARY))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@pytest.fixture
def solved(till: Project, solved_once: tuple[Path, str]) -> str:
    """The id of a complete run of `till`, whose server is gone: a copy of one made elsewhere."""
    made, task_id = solved_once
    shutil.rmtree(till.top)
    copy_repository(made, till.top)
    return task_id
