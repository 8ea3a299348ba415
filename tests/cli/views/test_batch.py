"""What a batch comes to."""

from pathlib import Path
from typing import Any

import pytest

from clean_room_agent.app.batch_tasks import BatchJob
from clean_room_agent.app.batch_worker import JobOutcome
from clean_room_agent.app.settings import Overrides
from clean_room_agent.cli.views.batch import as_object, exit_code, line, summary, verdict
from clean_room_agent.orchestrator.task import PlanGiven


def job(number: int) -> BatchJob:
    return BatchJob(
        name=f"t{number}",
        line=number,
        repo=Path("/repo"),
        task_id=f"{number:08}-0000",
        task="Mend it\nplease",
        given=PlanGiven(),
        overrides=Overrides(),
        retry=False,
    )


def outcome(number: int, status: str, code: int, how: str = "new", **more: Any) -> JobOutcome:
    return JobOutcome(
        job=job(number), status=status, exit_code=code, how=how, detail={"calls": 2, "tokens": 10}, **more
    )


@pytest.mark.parametrize(
    ("codes", "code"),
    [
        ((0, 0), 0),
        ((0, 4), 4),
        ((4, 1), 1),
        ((1, 3), 3),
        ((3, 2), 2),
        ((2, 130), 130),
        ((0, 5), 5),
        ((5, 4), 4),
    ],
)
def test_the_most_serious_code_is_the_batch_s(codes: tuple[int, ...], code: int) -> None:
    outcomes = [outcome(number, "x", each) for number, each in enumerate(codes)]
    assert exit_code([each.job for each in outcomes], outcomes) == code


def test_a_batch_with_tasks_left_was_interrupted() -> None:
    assert exit_code([job(1), job(2)], [outcome(1, "complete", 0)]) == 130


def test_the_summary_counts_and_the_verdict_says_what_to_do() -> None:
    outcomes = [outcome(1, "complete", 0, "known"), outcome(2, "needs_human", 4)]
    told = summary([job(1), job(2), job(3)], outcomes, 4)
    assert told["statuses"] == {"complete": 1, "needs_human": 1}
    assert (told["not_begun"], told["known"], told["calls"]) == (1, 1, 4)
    words = verdict(told)
    assert "3 tasks: 1 complete, 1 needs human, 1 not started; 4 calls, 20 tokens" in words
    assert "--retry" in words


def test_of_unproven_tasks_the_verdict_says_what_would_show_them() -> None:
    outcomes = [outcome(1, "complete", 0), outcome(2, "unproven", 5)]
    words = verdict(summary([job(1), job(2)], outcomes, 5))
    assert "2 tasks: 1 complete, 1 unproven" in words
    assert "check" in words
    assert "--retry" not in words


def test_an_outcome_in_a_line_and_as_an_object() -> None:
    broken = outcome(1, "error", 3, error="no server\nat all", hint="start it")
    assert line(broken) == "t1: error: no server"
    assert as_object(broken)["hint"] == "start it"
    assert "error" not in as_object(outcome(2, "complete", 0))
