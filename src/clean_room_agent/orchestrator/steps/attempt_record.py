"""An attempt as it is kept for a resumed run, and as rows of the record."""

from typing import Any

from pydantic import model_validator
from pydantic.dataclasses import dataclass

from clean_room_agent.db.raw.passes import AttemptRow, ValidationRow
from clean_room_agent.orchestrator.journal import Pass
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.run_recorder import PassEnd
from clean_room_agent.orchestrator.steps.attempt import Attempt

OF_CHANGE = ("commit", "diff", "result", "untouched")
OF_JUDGMENT = ("tests", "verdict", "unfinished")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedAttempt:
    """An attempt, with what informs about an accepted one and decides nothing."""

    attempt: Attempt
    lint: str | None = None
    types: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _read_flat(cls, kept: Any) -> Any:
        """Earlier versions kept the attempt as one flat object named `tried`: a run that one of them began can go on."""
        if not isinstance(kept, dict) or "tried" not in kept:
            return kept
        flat = dict(kept["tried"])
        flat.pop("fingerprint", None)
        change = {key: flat.pop(key) for key in OF_CHANGE if key in flat}
        judgment = {key: flat.pop(key) for key in OF_JUDGMENT if key in flat}
        tested = judgment.get("tests") is not None and judgment.get("verdict") is not None
        attempt = {**flat, "change": change, "judgment": judgment if tested else None}
        return {"attempt": attempt, "lint": kept.get("lint"), "types": kept.get("types")}


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
