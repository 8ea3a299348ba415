"""A job that cannot begin is an outcome, not an error."""

from pathlib import Path

from clean_room_agent.app.batch_tasks import BatchJob
from clean_room_agent.app.batch_worker import solve_job
from clean_room_agent.app.settings import Overrides
from clean_room_agent.orchestrator.task import PlanGiven


def test_what_prevents_a_run_is_told_with_its_exit_code(tmp_path: Path) -> None:
    job = BatchJob(
        name="t1",
        line=1,
        repo=tmp_path,
        task_id="3f2c7a90-0000-4000-8000-000000000000",
        task="mend it",
        given=PlanGiven(),
        overrides=Overrides(),
        retry=False,
    )
    outcome = solve_job(job)
    assert (outcome.status, outcome.exit_code, outcome.how) == ("error", 2, "new")
    assert outcome.job is job
    assert "repository" in outcome.error
