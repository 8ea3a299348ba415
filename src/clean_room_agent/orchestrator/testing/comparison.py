"""Compares the test run of an attempt with the one before its step."""

from clean_room_agent.artifacts.evidence import FailingTest, group_of
from clean_room_agent.evidence_text import same_failure
from clean_room_agent.execute.attempt_result import Goal, TestedAttempt
from clean_room_agent.orchestrator.testing.gate import HOLDER, StepVerdict
from clean_room_agent.orchestrator.testing.results import TestRun, evidence_of


def what_tests_showed(before: TestRun, after: TestRun, verdict: StepVerdict) -> TestedAttempt:
    """The comparison of both runs; a goal test is one that was red in `before`."""
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
        goals=tuple(_goal(name, earlier.get(name), failing.get(name), after) for name in sorted(red)),
        newly_failing=newly,
        new=new,
        missing=tuple(name for name in verdict.newly_failing if name not in after.report.outcomes),
        after=evidence_of(after),
    )


def left_undone(base: TestRun, now: TestRun) -> frozenset[str]:
    """The red tests that speak against a change as the last one: those beside tests that were red at the base and are not
    now, or all of them where there are none such. What stands elsewhere may be red for reasons of its own.
    """
    turned = {group_of(name) for name in base.red() - now.red()}
    return frozenset(name for name in now.red() if not turned or group_of(name) in turned)


def undone_in_words(base: TestRun, now: TestRun) -> str:
    """How much a last change left undone."""
    if base.red() <= now.red():
        return "no goal test passes yet"
    return f"{len(left_undone(base, now))} of them beside tests that pass now"


def _goal(name: str, before: FailingTest | None, now: FailingTest | None, after: TestRun) -> Goal:
    if name in after.red():
        if before is None or now is None or same_failure(before, now):
            return Goal(name=name, state="fails as before")
        return Goal(name=name, state="fails in another way", failing=now)
    return Goal(name=name, state="passes now" if passes(name, after) else "did not run")


def passes(name: str, after: TestRun) -> bool:
    """Whether a test that is not red passed; what stood for a file or class that could not be loaded gives way to its
    tests, and some runners name failures alone.
    """
    if name in after.report.outcomes:
        return after.report.outcomes[name] == "passed"
    return after.report.whole and (not after.report.named or HOLDER.search(name) is not None)
