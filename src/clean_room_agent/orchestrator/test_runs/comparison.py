"""Compares the test run of an attempt with the one before its step."""

from collections.abc import Collection

from clean_room_agent.artifacts.evidence import FailingTest, same_failure
from clean_room_agent.execute.attempt_result import Goal, TestedAttempt
from clean_room_agent.orchestrator.test_runs.gate import StepVerdict, passes
from clean_room_agent.orchestrator.test_runs.results import TestRun, evidence_of


def what_tests_showed(
    before: TestRun, after: TestRun, verdict: StepVerdict, *, left_out: Collection[str] = ()
) -> TestedAttempt:
    """Compare both runs; a goal test is one that was red in `before` and that the task is about: none of those `left_out`."""
    failing = {test.name: test for test in reversed(after.failing)}
    earlier = {test.name: test for test in reversed(before.failing)}
    newly = tuple(failing[name] for name in verdict.newly_failing if name in failing)
    red = before.red()
    new = tuple(
        test
        for name, test in sorted(failing.items())
        if name not in red and before.report.outcomes.get(name) is None and name not in verdict.newly_failing
    )
    return TestedAttempt(
        reason=verdict.reason,
        goals=tuple(
            _goal(name, earlier.get(name), failing.get(name), after) for name in sorted(red - set(left_out))
        ),
        newly_failing=newly,
        new=new,
        missing=tuple(name for name in verdict.newly_failing if name not in after.report.outcomes),
        after=evidence_of(after, left_out=left_out),
    )


def _goal(name: str, before: FailingTest | None, now: FailingTest | None, after: TestRun) -> Goal:
    if name in after.red():
        if before is None or now is None or same_failure(before, now):
            return Goal(name=name, state="fails as before")
        return Goal(name=name, state="fails in another way", failing=now)
    return Goal(name=name, state="passes now" if passes(name, after) else "did not run")
