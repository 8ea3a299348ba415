"""A job that cannot begin is an outcome, not an error."""

import json
from pathlib import Path

import pytest
from testing.client.model_client import NOW
from testing.repositories import make_repository

from clean_room_agent.app.batch import solve_job
from clean_room_agent.app.batch_tasks import BatchJob
from clean_room_agent.app.settings import Overrides
from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.runs import OrchestratorRunRow, append_orchestrator_run
from clean_room_agent.orchestrator.task import PlanGiven
from clean_room_agent.workspace import Workspace


@pytest.mark.parametrize(("accept", "code"), [("all-pass", 5), ("green", 0)])
def test_a_run_that_had_ended_as_unproven_is_not_run_again(tmp_path: Path, accept: str, code: int) -> None:
    top = make_repository(tmp_path / "project", {"a.py": ""})
    Workspace(repo=top).create()
    row = OrchestratorRunRow(
        task_id="3f2c7a90-0000-4000-8000-000000000000",
        repo_path=str(top),
        task_description="mend it",
        status=RunStatus.UNPROVEN,
        timestamp=NOW,
        config=json.dumps({"testing": {"accept": accept}}),
        reason="nothing shows it",
    )
    with Record.open(top, clock=lambda: NOW) as record:
        record.write(append_orchestrator_run, row)
    for retry in (False, True):
        outcome = solve_job(job_of(top, retry=retry))
        assert (outcome.status, outcome.exit_code, outcome.how) == ("unproven", code, "known")
        assert outcome.detail["evidence"] == []


def job_of(repo: Path, *, retry: bool = False) -> BatchJob:
    return BatchJob(
        name="t1",
        line=1,
        repo=repo,
        task_id="3f2c7a90-0000-4000-8000-000000000000",
        task="mend it",
        given=PlanGiven(),
        overrides=Overrides(),
        retry=retry,
    )


def test_what_prevents_a_run_is_told_with_its_exit_code(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    outcome = solve_job(job)
    assert (outcome.status, outcome.exit_code, outcome.how) == ("error", 2, "new")
    assert outcome.job is job
    assert "repository" in outcome.error
