"""Judges an attempt by its test run: whether its change may stay, and what the next prompt says about it."""

from dataclasses import replace

from clean_room_agent.artifacts.context import ContextPackage, RefinementRequest
from clean_room_agent.artifacts.outcomes import AttemptOutcome
from clean_room_agent.execute.attempt_result import describe_result
from clean_room_agent.orchestrator.full_tests import unstable_tests
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.steps.attempt import Attempt, Judgment, StepJob, evidence_space
from clean_room_agent.orchestrator.steps.missing_context import (
    missing_after_tests,
    unchanged,
    unshown_targets,
)
from clean_room_agent.orchestrator.testing.comparison import left_undone, undone_in_words, what_tests_showed
from clean_room_agent.orchestrator.testing.gate import StepVerdict, judge_step
from clean_room_agent.orchestrator.testing.results import TestRun, evidence_of
from clean_room_agent.orchestrator.testing.run import says_nothing
from clean_room_agent.path_kinds import is_test_path


def judge(run: Run, job: StepJob, package: ContextPackage, attempt: Attempt, tests: TestRun) -> Attempt:
    """The attempt, which waited for its tests, with what they say."""
    before, accept = run.progress.accepted, run.tests.config.accept
    assert before is not None, "the baseline runs before the first step"
    commit = attempt.change.commit
    planned = tuple(
        one.path
        for one in run.commits.changed(run.commits.head, commit)
        if one.status == "D" or is_test_path(one.path)
    )
    verdict = judge_step(before, tests, accept, planned=planned)
    if verdict.newly_failing:
        unstable = unstable_tests(run, tests, verdict.newly_failing, commit)
        if unstable:
            verdict = judge_step(before, tests, accept, planned=planned, unstable=unstable)
    base = run.progress.at_base or before
    all_must_pass = accept == "all-pass" and bool(base.red())
    unfinished = verdict.passed and job.last and all_must_pass and bool(left_undone(base, tests))
    missing = None
    if unfinished or not verdict.passed:
        missing = missing_after_tests(
            evidence_of(tests), package, run.commits.tree().paths, newly_failing=verdict.newly_failing
        )
    remark = f": {undone_in_words(base, tests)}" if unfinished else _left_out(run, job, package, commit)
    untouched = attempt.change.untouched
    left = f"; left as it was: {', '.join(untouched)}" if untouched else ""
    showed = what_tests_showed(before, tests, verdict)
    return replace(
        attempt,
        outcome=_outcome(run, tests, verdict, missing),
        detail=f"{verdict.reason}{remark}{left}",
        judgment=Judgment(tests=tests, verdict=verdict, unfinished=unfinished),
        missing=missing,
        feedback=""
        if verdict.passed and not unfinished
        else describe_result(showed, bound=evidence_space(run)),
    )


def _outcome(
    run: Run, tests: TestRun, verdict: StepVerdict, missing: RefinementRequest | None
) -> AttemptOutcome:
    if verdict.passed:
        return AttemptOutcome.APPLIED_AND_PASSED
    if says_nothing(tests) and _says_nothing_at_head(run):
        return AttemptOutcome.INFRASTRUCTURE
    if tests.end.timed_out:
        return AttemptOutcome.TIMED_OUT
    return AttemptOutcome.INSUFFICIENT_CONTEXT if missing else AttemptOutcome.TESTS_FAILED


def _says_nothing_at_head(run: Run) -> bool:
    """Whether the tests, which ran before, do not run without the attempt's edits either."""
    run.tests.checkout(run.commits.head)
    return says_nothing(run.tests.run_step())


def _left_out(run: Run, job: StepJob, package: ContextPackage, commit: str) -> str:
    """A remark on what the step names, its prompt could not show, and the attempt left as it was; "" where nothing."""
    left = unchanged(unshown_targets(job.step, package), run.commits.tree(), run.commits.tree(commit))
    return f"; unchanged, too large to show: {', '.join(left)}" if left else ""
