"""An attempt in the record: the pass that it is, the attempt itself, and the test run that judged it."""

from dataclasses import dataclass

from clean_room_agent.artifacts.outcomes import AttemptOutcome, PassType
from clean_room_agent.db.raw.attempts import AttemptRow, ValidationRow
from clean_room_agent.orchestrator.recovery.rules import Action
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.run_recorder import OpenPass, PassEnd
from clean_room_agent.orchestrator.steps.attempt import StepJob, Tried


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempted:
    """An attempt, with what informs about an accepted one and decides nothing."""

    tried: Tried
    lint: str | None = None
    types: str | None = None


def open_attempt(
    run: Run, job: StepJob, pass_id: str, number: int, action: Action, *, known: bool
) -> OpenPass:
    """The pass of the attempt has begun; it is shown the hints that are due."""
    at = run.progress
    run.hear_hints(pass_id, known=known)
    count = f"step {len(at.done) + len(at.failed) + 1}/{max(at.total_steps, 1)}"
    title = f"{count} {job.part.id}/{job.step.id}" + (f", attempt {number}" if number > 1 else "")
    return run.recorder.open_pass(
        PassType.IMPLEMENT,
        pass_id,
        title,
        mode="implement",
        role="coding",
        now=run.monotonic(),
        part_id=job.part.id,
        step_id=job.step.id,
        known=known,
        model=action.model,
    )


def record_attempt(run: Run, opened: OpenPass, attempted: Attempted, number: int) -> None:
    """The attempt and its test run stand in the record, then the pass is closed."""
    tried = attempted.tried
    success = tried.outcome is AttemptOutcome.APPLIED_AND_PASSED
    run.recorder.attempt(
        AttemptRow(
            task_run_id=opened.row_id,
            attempt=number,
            prompt_tokens=tried.answer.prompt_tokens,
            completion_tokens=tried.answer.completion_tokens,
            latency_ms=tried.answer.latency_ms,
            raw_response=tried.answer.step.raw_response,
            patch_applied=bool(tried.commit),
            timestamp=run.recorder.now(),
            outcome=tried.outcome,
            diff=tried.diff,
            edit_report=tried.result.reports if tried.result else (),
            call_id=tried.answer.call_id,
            commit_hash=tried.commit,
            error="" if success else tried.detail,
        ),
        _judged_by(run, opened, attempted),
    )
    detail = tried.detail if success else f"{tried.outcome.value.replace('_', ' ')}: {tried.detail}"
    run.session.for_pass(opened.pass_id).set_state(
        "attempt_summary", {"outcome": tried.outcome.value, "detail": tried.detail, "commit": tried.commit}
    )
    run.recorder.close_pass(
        opened, PassEnd(success=success, detail=detail, diff=tried.diff or None), now=run.monotonic()
    )


def _judged_by(run: Run, opened: OpenPass, attempted: Attempted) -> ValidationRow | None:
    """The test run of an attempt; None where none was made."""
    tried = attempted.tried
    if tried.tests is None or tried.verdict is None:
        return None
    return ValidationRow(
        attempt_id=None,
        success=tried.outcome is AttemptOutcome.APPLIED_AND_PASSED,
        test_output=tried.tests.output,
        lint_output=attempted.lint,
        type_check_output=attempted.types,
        failing_tests=tried.tests.failing,
        newly_failing=tried.verdict.newly_failing,
        task_id=opened.pass_id,
        kind="attempt",
        command=tried.tests.command,
        exit_code=tried.tests.returncode,
        timed_out=tried.tests.timed_out,
        tests_run=tried.tests.collected,
        tests_passed=tried.tests.passed,
        duration_ms=tried.tests.duration_ms,
        timestamp=run.recorder.now(),
    )
