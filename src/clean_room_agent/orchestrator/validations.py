"""Runs of the full tests, as the record has them."""

from clean_room_agent.db.raw.attempts import ValidationKind, ValidationRow
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.testing.results import TestRun


def note_tests(
    run: Run, tests: TestRun, kind: ValidationKind, *, success: bool, newly_failing: tuple[str, ...] = ()
) -> None:
    """The run stands in the record, as the task's own."""
    run.recorder.validation(
        ValidationRow(
            attempt_id=None,
            success=success,
            test_output=tests.output,
            failing_tests=tests.failing,
            newly_failing=newly_failing,
            task_id=run.task_id,
            kind=kind,
            command=tests.command,
            exit_code=tests.returncode,
            timed_out=tests.timed_out,
            tests_run=tests.collected,
            tests_passed=tests.passed,
            duration_ms=tests.duration_ms,
            timestamp=run.recorder.now(),
        )
    )
