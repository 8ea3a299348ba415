from typing import Any

import pytest
from testing.runs.memory_answers import implemented
from testing.runs.memory_run import MemoryProject, MemoryRun, part, pytest_run, step

from clean_room_agent.artifacts.outcomes import Action, AttemptOutcome
from clean_room_agent.artifacts.plans import PlanStep
from clean_room_agent.orchestrator.steps.after_failure import (
    attempt_seen,
    decide_next,
    divided,
    is_divisible,
    signals_of,
)
from clean_room_agent.orchestrator.steps.attempt import Attempt, AttemptChange, ChangeJudgment, StepJob
from clean_room_agent.orchestrator.steps.rounds import StepHistory
from clean_room_agent.orchestrator.test_runs.gate import StepVerdict

FIRST = Action(kind="retry", rule="first attempt")
JOB = StepJob(part=part("p1", "a.py"), step=step("s1", "a.py"), constraints="")
PASS_ID = "0b0c0d0e-0000-4000-8000-000000000000:impl:p1:s1"


def attempt(outcome: AttemptOutcome = AttemptOutcome.TESTS_FAILED, **fields: Any) -> Attempt:
    return Attempt(outcome=outcome, detail="newly failing: t.py::a", answer=implemented(), **fields)


def failing(**outcomes: Any) -> ChangeJudgment:
    tests = pytest_run({f"t.py::{name}": outcome for name, outcome in outcomes.items()})
    newly = tuple(sorted(tests.red()))
    return ChangeJudgment(
        tests=tests, verdict=StepVerdict(passed=False, reason="newly failing", newly_failing=newly)
    )


def after(memory: MemoryRun, *attempts: Attempt, job: StepJob = JOB) -> Action:
    """What is decided when these attempts have failed."""
    history = StepHistory(hinted=[0])
    for one in attempts:
        history.failed.append(one)
        history.seen.append(attempt_seen(one, FIRST, None))
    return decide_next(memory.run, job, history, PASS_ID)


def test_a_first_failure_is_tried_again(project: MemoryProject) -> None:
    action = after(project.open(lambda _: ""), attempt(judgment=failing(a="failed")))
    assert action.kind == "retry"


def test_when_attempts_are_used_up_the_step_is_given_up(project: MemoryProject) -> None:
    memory = project.open(lambda _: "", solve={"max_attempts": 1}, recovery={"rules": ()})
    assert after(memory, attempt()).kind == "skip"


def test_a_spent_budget_stops_the_run(project: MemoryProject) -> None:
    memory = project.open(lambda _: "", orchestrator={"max_calls": 1})
    memory.meter.add(prompt_tokens=1, completion_tokens=1, latency_ms=1, window=1)
    assert after(memory, attempt()).kind == "stop"


def test_what_was_decided_stands_when_the_run_goes_on(project: MemoryProject) -> None:
    first = after(project.open(lambda _: ""), attempt())
    again = project.open(lambda _: "", resumed=True, solve={"max_attempts": 1})
    assert after(again, attempt()) == first, "though the limit is lower now"


def test_what_ended_a_step_is_decided_anew(project: MemoryProject) -> None:
    strict: dict[str, Any] = {"recovery": {"rules": ("retry",)}}
    memory = project.open(lambda _: "", solve={"max_attempts": 1}, **strict)
    assert after(memory, attempt()).kind == "skip"
    again = project.open(lambda _: "", resumed=True, solve={"max_attempts": 2}, **strict)
    assert after(again, attempt()).kind == "retry", "the limit was raised"


def test_a_model_is_asked_why_where_the_rules_do_not_know(project: MemoryProject) -> None:
    memory = project.open(lambda _: "No JSON.", recovery={"doctor": "always", "rules": ("diagnose", "retry")})
    red = attempt(judgment=failing(a="failed"))
    action = after(memory, red, red)
    assert memory.asked[0] == "impl:p1:s1 doctor"
    assert action.kind == "change_strategy", "an answer that cannot be read says no more than to try again"
    assert [advice.confidence for advice in memory.run.progress.advice] == [0.0]


@pytest.mark.parametrize(
    ("one", "category"),
    [
        (attempt(AttemptOutcome.TRUNCATED), "truncated"),
        (attempt(AttemptOutcome.REFUSED), "patch"),
        (attempt(judgment=failing(a="failed")), "logic"),
        (
            Attempt(outcome=AttemptOutcome.UNREADABLE, detail="x", answer=implemented(endless=True)),
            "endless",
        ),
    ],
)
def test_each_kind_of_failure_is_seen_as_what_it_is(one: Attempt, category: str) -> None:
    assert attempt_seen(one, FIRST, None).category == category


def test_equal_changes_are_seen_as_the_same_tree() -> None:
    seen = [
        attempt_seen(attempt(change=AttemptChange(diff=diff)), FIRST, None).tree
        for diff in ("a", "a", "b", "")
    ]
    assert seen[0] == seen[1] != seen[2]


def test_a_test_that_no_longer_runs_is_a_signal_too() -> None:
    judgment = failing(a="failed")
    verdict = StepVerdict(passed=False, reason="x", newly_failing=("t.py::gone",))
    one = attempt(judgment=ChangeJudgment(tests=judgment.tests, verdict=verdict))
    assert "does not run now" in signals_of(one)[0].message


def several(*paths: str, symbols: tuple[str, ...] = ()) -> PlanStep:
    return step("s1", *paths).model_copy(update={"target_symbols": symbols})


def test_a_step_of_several_files_or_symbols_can_be_divided() -> None:
    assert is_divisible(several("a.py", "b.py"))
    assert is_divisible(several("a.py", symbols=("split", "total")))
    assert not is_divisible(several("a.py", symbols=("split",)))


def test_the_smallest_deliverable_is_the_first_file_or_symbol() -> None:
    small, rest = divided(several("a.py", "b.py", "c.py"))
    assert (small.id, [target.path for target in small.target_files]) == ("s1-a", ["a.py"])
    assert (rest.id, [target.path for target in rest.target_files]) == ("s1-b", ["b.py", "c.py"])
    small, rest = divided(several("a.py", symbols=("split", "total")))
    assert (small.target_symbols, rest.target_symbols) == (("split",), ("total",))
    assert "Of this, only split now" in small.description
