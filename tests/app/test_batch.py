"""A job that cannot begin is an outcome, not an error."""

import hashlib
import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from testing.client.model_client import NOW
from testing.repositories import make_repository

from clean_room_agent.app.batch import BatchJob, read_jobs, solve_job
from clean_room_agent.app.config_values import write_config
from clean_room_agent.app.settings import Overrides
from clean_room_agent.artifacts.goals import NOTHING_GIVEN, GivenEvidence
from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.runs import OrchestratorRunRow, append_orchestrator_run
from clean_room_agent.errors import UsageError
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


def faults(tmp_path: Path, *lines: str) -> str:
    path = tmp_path / "tasks.jsonl"
    path.write_text("\n".join(lines))
    with pytest.raises(UsageError) as caught:
        read_jobs(path, repo=tmp_path, batch="b", overrides=Overrides(), retry=False)
    return caught.value.message


def test_every_line_is_checked_before_anything_starts(tmp_path: Path) -> None:
    told = faults(tmp_path, "{", "[]", '{"task": "x", "issue": "y"}', '{"tsak": "x"}')
    assert "nothing was started" in told
    assert "line 1: not JSON" in told
    assert "line 2: not a JSON object" in told
    assert "line 3: give the task either" in told
    assert "line 4: unknown key 'tsak'" in told


def test_after_ten_faults_the_rest_is_counted(tmp_path: Path) -> None:
    assert "and 5 more lines" in faults(tmp_path, *["{"] * 15)


def test_a_file_without_tasks_is_refused(tmp_path: Path) -> None:
    assert "contains no task" in faults(tmp_path, "", "  ")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    top = make_repository(tmp_path / "project", {"a.py": "", "b.py": ""})
    tables: dict[str, dict[str, Any]] = {
        "models": {"base_url": "http://127.0.0.1:1", "coding": "c:1b", "reasoning": "r:1b"},
        "budget": {"context_window": 16384, "reserved_tokens": 4096},
        "solve": {"max_attempts": 3, "max_refinement_loops": 1},
        "testing": {"test_command": "pytest"},
    }
    write_config(Workspace(repo=top), tables)
    return top


def jobs(tmp_path: Path, repo: Path, *lines: str) -> tuple[BatchJob, ...]:
    path = tmp_path / "tasks.jsonl"
    path.write_text("\n".join(lines))
    return read_jobs(path, repo=repo, batch="b", overrides=Overrides(), retry=False)


def test_a_task_says_how_it_is_judged_and_where_it_is(tmp_path: Path, repo: Path) -> None:
    line = '{"task": "x", "id": "t", "check": "assert a", "test": ["t.py::a", "t.py::b"], "file": ["a.py"]}'
    (job,) = jobs(tmp_path, repo, line)
    assert job.given.evidence == GivenEvidence(
        checks=("assert a",), tests=("t.py::a", "t.py::b"), files=("a.py",)
    )
    (plain,) = jobs(tmp_path, repo, '{"task": "x", "id": "t"}')
    assert plain.given.evidence == NOTHING_GIVEN
    assert plain.task_id != job.task_id, "with other checks, it is another run"


def test_a_task_is_found_again_under_the_id_of_earlier_versions(tmp_path: Path, repo: Path) -> None:
    (job,) = jobs(tmp_path, repo, '{"task": "x", "id": "t"}')
    digest = hashlib.sha256("\0".join(("b", str(repo), "t", "x", "")).encode()).digest()
    assert job.task_id == str(uuid.UUID(bytes=digest[:16], version=4))


def test_what_is_wrong_with_how_a_task_is_judged_is_told_by_line(tmp_path: Path, repo: Path) -> None:
    with pytest.raises(UsageError) as caught:
        jobs(
            tmp_path,
            repo,
            '{"task": "x", "file": "c.py"}',
            '{"task": "y", "check": 3}',
            '{"task": "z", "test": ""}',
        )
    told = caught.value.message
    assert "line 1: --file c.py: there is no such file" in told
    assert "line 2: check" in told
    assert "line 3: --test '' says nothing" in told
