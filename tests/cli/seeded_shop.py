"""A shop whose record is seeded."""

import json
from pathlib import Path
from typing import Any

import pytest
from testing.repositories import copy_repository, make_repository
from testing.runs.solving import Project, project_at
from testing.seeded_record import Seeded, seed_record

from clean_room_agent.db.connection import connect_file
from clean_room_agent.workspace import Workspace

COUNTS = {"retrieval": 5, "scope": 205, "format": 6, "implement": 4, "unknown": 2}


@pytest.fixture(scope="session")
def seeded_once(tmp_path_factory: pytest.TempPathFactory) -> Seeded:
    top = make_repository(tmp_path_factory.mktemp("seed") / "shop", {"src/a.py": "x = 1\n"})
    return seed_record(top, COUNTS)


@pytest.fixture
def shop(tmp_path: Path, seeded_once: Seeded) -> Project:
    copy_repository(seeded_once.top, tmp_path / "shop")
    return project_at(tmp_path / "shop", {}, {})


def rows(project: Project, query: str) -> list[Any]:
    conn = connect_file("raw", Workspace(repo=project.top).raw, read_only=True)
    try:
        return conn.execute(query).fetchall()
    finally:
        conn.close()


def run(project: Project, *args: str) -> tuple[int, dict[str, Any], str]:
    """The command, without a model server."""
    project.configure("http://127.0.0.1:1")
    code, out, err = project.run_here(*args, "--json")
    return code, json.loads(out) if out.strip() else {}, err
