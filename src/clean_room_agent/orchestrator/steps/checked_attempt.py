"""An attempt whose tests have run: whether it may stay, what the next prompt says about it, which of several is best, and how it is
recorded and kept for a resumed run.

At equal cost, only execution separates good samples of small models from bad ones (arXiv 2606.16999); agreement breaks ties.
"""

import re
from collections.abc import Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.context import ContextPackage, RefinementRequest
from clean_room_agent.artifacts.outcomes import AttemptOutcome
from clean_room_agent.db.raw.passes import AttemptRow, ValidationRow
from clean_room_agent.orchestrator.full_tests import settle_names, unstable_tests, validation_of
from clean_room_agent.orchestrator.journal import Pass
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.run_recorder import PassEnd
from clean_room_agent.orchestrator.steps.attempt import Attempt, ChangeJudgment, StepJob, evidence_space
from clean_room_agent.orchestrator.steps.missing_context import missing_after_tests
from clean_room_agent.orchestrator.task_evidence import task_evidence
from clean_room_agent.orchestrator.test_runs.command_runner import says_nothing
from clean_room_agent.orchestrator.test_runs.gate import (
    StepVerdict,
    TestFiles,
    judge_step,
    left_undone,
    passes,
    undone_in_words,
)
from clean_room_agent.orchestrator.test_runs.results import TestRun, evidence_of
from clean_room_agent.paths import is_test_path

PLACE = re.compile(r"(@@ -\S+) .*")
"""The header of a hunk; its position after the change depends on the blank lines above it."""


REMOVING = re.compile(
    r"\b(?:remov(?:e[sd]?|ing|al)|delet\w+|drop(?:s|ped|ping)?|renam\w+|replac\w+|rewrit\w+|merg(?:e[sd]?|ing)|mov(?:e[sd]?|ing)"
    r"|consolidat\w+|clean(?:s|ed|ing)?[ -]?up|obsolete|outdated|deprecat\w+|unused|redundant|duplicat\w+|refactor\w*"
    r"|parametri[sz]\w+|convert\w*|migrat\w+|simplif\w+|reorgani[sz]\w+|restructur\w+|no longer)\b",
    re.IGNORECASE,
)
"""Words of a task that may leave a file with fewer tests."""


class CheckedAttempt(Struct, frozen=True, kw_only=True):
    """An attempt with the output of linters, which is for information only."""

    attempt: Attempt
    lint: str | None = None
    types: str | None = None


def record_attempt(run: Run, current: Pass, checked: CheckedAttempt, number: int) -> None:
    """Record the attempt and its test run, then close the pass."""
    attempt, pass_id = checked.attempt, current.header.pass_id
    answer, change = attempt.answer, attempt.change
    run.recorder.attempt(
        AttemptRow(
            task_run_id=current.row_id,
            attempt=number,
            prompt_tokens=answer.prompt_tokens,
            completion_tokens=answer.completion_tokens,
            latency_ms=answer.latency_ms,
            raw_response=answer.step.raw_response,
            patch_applied=bool(change.commit),
            timestamp=run.recorder.now(),
            outcome=attempt.outcome,
            diff=change.diff,
            edit_report=change.result.reports if change.result else (),
            call_id=answer.call_id,
            commit_hash=change.commit,
            error="" if attempt.passed else attempt.detail,
        ),
        _validation_row(run, pass_id, checked),
    )
    detail = attempt.detail
    words = detail if attempt.passed else f"{attempt.outcome.value.replace('_', ' ')}: {detail}"
    current.close(PassEnd(success=attempt.passed, detail=words, diff=change.diff or None))


def _validation_row(run: Run, pass_id: str, checked: CheckedAttempt) -> ValidationRow | None:
    judgment = checked.attempt.judgment
    if judgment is None:
        return None
    row = validation_of(
        run,
        judgment.tests,
        "attempt",
        task_id=pass_id,
        success=checked.attempt.passed,
        newly_failing=judgment.verdict.newly_failing,
    )
    return replace(row, lint_output=checked.lint, type_check_output=checked.types)


def judge(run: Run, job: StepJob, package: ContextPackage, attempt: Attempt, tests: TestRun) -> Attempt:
    """The attempt, which had to be tested, with the tests' judgment."""
    before, accept = run.progress.accepted, run.tests.config.accept
    assert before is not None, "the baseline runs before the first step"
    commit, tests = attempt.change.commit, run.tests.names.of(tests)
    base = run.progress.at_base or before
    changed = run.commits.changed(run.commits.head, commit)
    planned = tuple(one.path for one in changed if one.status == "D" or is_test_path(one.path))
    removing = REMOVING.search(f"{run.task.words}\n{job.step.description}") is not None
    files = TestFiles(
        created=tuple(one.path for one in changed if one.status == "A"),
        deleted=tuple(one.path for one in changed if one.status == "D"),
        kept=() if removing else planned,
    )
    gate = partial(judge_step, before, tests, accept, planned=planned, files=files, base=base)
    verdict = gate()
    if not verdict.passed and settle_names(run, before, tests, unchanged=run.commits.head, changed=commit):
        return judge(run, job, package, attempt, tests)
    if verdict.newly_failing:
        unstable = unstable_tests(run, tests, verdict.newly_failing, commit)
        if unstable:
            verdict = gate(unstable=unstable)
    unfinished = verdict.passed and job.last and _is_left_undone(run, base, tests)
    missing, broken = None, ""
    dead = not verdict.passed and _is_infrastructure(run, tests)
    if not verdict.passed and not dead:
        from clean_room_agent.orchestrator.test_runs.missing_modules import broken_import

        broken = broken_import(before, tests, verdict.newly_failing)
    if not broken and (unfinished or not verdict.passed):
        missing = missing_after_tests(
            evidence_of(tests), package, run.commits.tree().paths, newly_failing=verdict.newly_failing
        )
    remark = f": {undone_in_words(base, tests)}" if unfinished else ""
    untouched = attempt.change.untouched
    left = f"; left as it was: {', '.join(untouched)}" if untouched else ""
    return replace(
        attempt,
        outcome=AttemptOutcome.INFRASTRUCTURE if dead else _attempt_outcome(tests, verdict, missing, broken),
        detail=f"{broken or verdict.reason}{remark}{left}",
        judgment=ChangeJudgment(tests=tests, verdict=verdict, unfinished=unfinished),
        missing=missing,
        feedback=""
        if verdict.passed and not unfinished
        else _test_feedback(run, before, tests, replace(verdict, reason=broken or verdict.reason)),
    )


def _is_left_undone(run: Run, base: TestRun, tests: TestRun) -> bool:
    """Whether a last change leaves tests red that keep the result from being complete."""
    accept, goals = run.tests.config.accept, {goal.name for goal in run.progress.goals.deciding}
    if accept == "no-new-failures" or (accept != "all-pass" and goals and not goals & tests.red()):
        return False
    return bool(base.red() and left_undone(base, tests))


def _test_feedback(run: Run, before: TestRun, after: TestRun, verdict: StepVerdict) -> str:
    from clean_room_agent.execute.attempt_result import describe_result
    from clean_room_agent.orchestrator.test_runs.gate import what_tests_showed

    showed = what_tests_showed(before, after, verdict, left_out=task_evidence(run, before).others)
    return describe_result(showed, bound=evidence_space(run))


def _attempt_outcome(
    tests: TestRun, verdict: StepVerdict, missing: RefinementRequest | None, broken: str
) -> AttemptOutcome:
    if verdict.passed:
        return AttemptOutcome.APPLIED_AND_PASSED
    if broken:
        return AttemptOutcome.IMPORT_BROKEN
    if tests.end.timed_out:
        return AttemptOutcome.TIMED_OUT
    return AttemptOutcome.INSUFFICIENT_CONTEXT if missing else AttemptOutcome.TESTS_FAILED


def _is_infrastructure(run: Run, tests: TestRun) -> bool:
    """Whether the tests, which ran before, now do not run even without the attempt's edits."""
    known = run.progress.accepted is not None and run.progress.accepted.report.whole
    if not known or not says_nothing(tests):
        return False
    run.tests.checkout(run.commits.head)
    return says_nothing(run.tests.run_step())


class RankedAttempt(Struct, frozen=True, kw_only=True):
    """What the choice takes into account about one attempt."""

    number: int
    """Of the attempt, from 1."""
    may_stay: bool
    """Whether its tests passed and, for the last change of a run, it turned a goal test green."""
    goals: int
    """Goal tests: those that were red before the step."""
    green: int
    """Goal tests that pass now."""
    newly: int
    """Newly failing tests."""
    tested: bool
    placed: bool
    """Whether its edits could be read, whether or not they were applied."""
    diff: str

    @property
    def is_full(self) -> bool:
        """Whether no other can do better: all goal tests are green, and nothing is broken."""
        return self.may_stay and self.green == self.goals

    @property
    def rank(self) -> tuple[bool, int, bool, bool, bool]:
        """The rank by the tests; greater is better."""
        return self.may_stay, self.green, self.newly == 0, self.tested, self.placed


def candidate(attempt: Attempt, number: int, before: TestRun | None) -> RankedAttempt:
    """The attempt of that number, as the choice sees it; `before` ran before the step."""
    goals = frozenset() if before is None else before.red()
    after = attempt.judgment.tests if attempt.judgment else None
    red = frozenset() if after is None else after.red()
    green = 0 if after is None else sum(name not in red and passes(name, after) for name in goals)
    return RankedAttempt(
        number=number,
        may_stay=attempt.passed and bool(green or not attempt.unfinished),
        goals=len(goals),
        green=green,
        newly=len(attempt.judgment.verdict.newly_failing) if attempt.judgment else 0,
        tested=after is not None,
        placed=attempt.change.result is not None,
        diff=attempt.change.diff,
    )


def choose(candidates: Sequence[RankedAttempt]) -> RankedAttempt:
    """The best: by its tests, then the smallest of the largest group of equal changes, then the first."""
    top = max(one.rank for one in candidates)
    best = [one for one in candidates if one.rank == top]
    return min(best, key=lambda one: (-_count_agreeing(one, best), _change_size(one), one.number))


def why_not(loser: RankedAttempt, candidates: Sequence[RankedAttempt]) -> str:
    """In one line, why the chosen one of `candidates` is better."""
    best = choose(candidates)
    name = f"attempt {best.number}"
    goals = f"{name} has {best.green} of {best.goals} goal tests green, this one {loser.green}"
    turned_less = loser.tested and not loser.newly and loser.green < best.green
    said = (
        goals if turned_less else f"{name} passed, this one did not",
        goals,
        f"{name} broke no test, this one {loser.newly}",
        f"the edits of {name} came to the tests",
        f"the edits of {name} could be read",
    )
    for ours, theirs, text in zip(best.rank, loser.rank, said, strict=True):
        if ours != theirs:
            return text
    if normalised_diff(best.diff) == normalised_diff(loser.diff):
        return f"the same change as {name}"
    equal = [one for one in candidates if one.rank == best.rank]
    if _count_agreeing(best, equal) > _count_agreeing(loser, equal):
        return f"more candidates made the change of {name}"
    return f"{name} changes less" if _change_size(best) < _change_size(loser) else f"{name} came first"


def normalised_diff(diff: str) -> str:
    """Equal for diffs that differ only in blank lines, in white space at line ends, and in object ids."""
    lines = (PLACE.sub(r"\1", line).rstrip() for line in diff.splitlines() if not line.startswith("index "))
    return "\n".join(line for line in lines if line not in {"", "+", "-"})


def _count_agreeing(one: RankedAttempt, others: Sequence[RankedAttempt]) -> int:
    same = normalised_diff(one.diff)
    return sum(normalised_diff(other.diff) == same for other in others)


def _change_size(one: RankedAttempt) -> tuple[int, int]:
    return sum(line.startswith(("+", "-")) for line in one.diff.splitlines()), len(one.diff)
