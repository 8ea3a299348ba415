"""An attempt as it is kept for a resumed run, and as rows of the record."""

from typing import Any

from msgspec import Struct

from clean_room_agent.db.raw.passes import AttemptRow, ValidationRow
from clean_room_agent.orchestrator.journal import Pass
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.run_recorder import PassEnd
from clean_room_agent.orchestrator.steps.attempt import Attempt
from clean_room_agent.orchestrator.testing.results import upgrade_test_run

OF_CHANGE = ("commit", "diff", "result", "untouched")
OF_JUDGMENT = ("tests", "verdict", "unfinished")


class CheckedAttempt(Struct, frozen=True, kw_only=True):
    """An attempt, with what informs about an accepted one and decides nothing."""

    attempt: Attempt
    lint: str | None = None
    types: str | None = None


def upgrade_attempt(kept: Any) -> Any:
    """What an earlier version kept of an attempt (one flat object, `tried`) with the parts that an `Attempt` has now."""
    if not isinstance(kept, dict):
        return kept
    if "tried" not in kept:
        return _with_upgraded_tests(kept)
    flat = dict(kept["tried"])
    flat.pop("fingerprint", None)
    change = {key: flat.pop(key) for key in OF_CHANGE if key in flat}
    judgment = {key: flat.pop(key) for key in OF_JUDGMENT if key in flat}
    tested = judgment.get("tests") is not None and judgment.get("verdict") is not None
    attempt = {**flat, "change": change, "judgment": judgment if tested else None}
    return _with_upgraded_tests({"attempt": attempt, "lint": kept.get("lint"), "types": kept.get("types")})


def _with_upgraded_tests(kept: dict[str, Any]) -> dict[str, Any]:
    attempt = kept.get("attempt")
    if not isinstance(attempt, dict) or not isinstance(judgment := attempt.get("judgment"), dict):
        return kept
    judgment = {**judgment, "tests": upgrade_test_run(judgment.get("tests"))}
    return {**kept, "attempt": {**attempt, "judgment": judgment}}


def record_attempt(run: Run, current: Pass[CheckedAttempt], checked: CheckedAttempt, number: int) -> None:
    """Record the attempt and its test run, then close the pass."""
    attempt, pass_id = checked.attempt, current.opened.header.pass_id
    answer, change = attempt.answer, attempt.change
    run.recorder.attempt(
        AttemptRow(
            task_run_id=current.opened.row_id,
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
        _validation(run, pass_id, checked),
    )
    detail = attempt.detail
    words = detail if attempt.passed else f"{attempt.outcome.value.replace('_', ' ')}: {detail}"
    current.close(PassEnd(success=attempt.passed, detail=words, diff=change.diff or None))


def _validation(run: Run, pass_id: str, checked: CheckedAttempt) -> ValidationRow | None:
    """The test run of an attempt; None where none was made."""
    judgment = checked.attempt.judgment
    if judgment is None:
        return None
    tests = judgment.tests
    return ValidationRow(
        attempt_id=None,
        success=checked.attempt.passed,
        test_output=tests.end.output,
        lint_output=checked.lint,
        type_check_output=checked.types,
        failing_tests=tests.failing,
        newly_failing=judgment.verdict.newly_failing,
        task_id=pass_id,
        kind="attempt",
        command=tests.command,
        exit_code=tests.end.returncode,
        timed_out=tests.end.timed_out,
        tests_run=tests.report.collected,
        tests_passed=tests.report.passed,
        duration_ms=tests.end.duration_ms,
        timestamp=run.recorder.now(),
    )
