"""A shop whose record is seeded, and a model that answers the prompts of training."""

import json
from pathlib import Path
from typing import Any

import pytest
from testing.repositories import copy_repository, make_repository
from testing.runs.solving import PROBE, Project, project_at
from testing.seeded_record import Seeded, seed_record
from testing.servers.ollama_script import ChatCall
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.db.connection import connect_file
from clean_room_agent.training.prompts import CURATE_DATA, TARGET_JUDGMENT, TRAIN_PLAN
from clean_room_agent.workspace import Workspace

COUNTS = {"retrieval": 5, "scope": 205, "format": 6, "implement": 4, "unknown": 2}


GOOD_PLAN = {"reason": "scope loses most", "target": "scope_judgment", "expected": 0.9, "epochs": 3}


class Mind:
    """Answers the training prompts; what it was asked is kept."""

    def __init__(self, *plans: dict[str, Any]) -> None:
        self.asked: list[str] = []
        self._plans = list(plans or (GOOD_PLAN,))

    def __call__(self, call: ChatCall) -> str:
        if call.prompt.startswith(PROBE):
            return "x"
        self.asked.append(call.title)
        if call.title == TRAIN_PLAN.title:
            return json.dumps(self._plans.pop(0) if len(self._plans) > 1 else self._plans[0])
        assert call.title in {TARGET_JUDGMENT.title, CURATE_DATA.title}
        return "yes"


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


def run(project: Project, mind: Mind, *args: str) -> tuple[int, dict[str, Any], str]:
    with OllamaServer(mind) as server:
        project.configure(server.base_url)
        code, out, err = project.run_here(*args, "--json")
    return code, json.loads(out) if out.strip() else {}, err
