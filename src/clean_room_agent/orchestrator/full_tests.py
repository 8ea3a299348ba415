"""Runs of the full tests on record, and which of their failures are of tests that come and go by themselves."""

from functools import partial

from clean_room_agent.artifacts.event_kinds import EventKind
from clean_room_agent.db.raw.attempts import ValidationKind, ValidationRow
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.testing.results import RED, TestRun
from clean_room_agent.orchestrator.testing.unstable_tests import passed_again, unstable


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


def unstable_tests(run: Run, tests: TestRun, names: tuple[str, ...], commit: str) -> tuple[str, ...]:
    """Those of `names` (newly failing in `tests`, a run of `commit`) that are unstable, sorted; the record has them.

    A test that passes without the others, and fails again when all of them run, is broken by what runs before it, and is
    not unstable. The worktree holds `commit` afterwards.
    """

    def run_at(place: str, failing: tuple[str, ...]) -> dict[str, bool]:
        run.bench.checkout(place)
        some = run.bench.run_some(tests, failing)
        if some is None:
            return {}
        passed = passed_again(some, failing)
        note_tests(run, some, "recheck", success=all(passed.values()))
        return passed

    found = unstable(names, here=partial(run_at, commit), base=partial(run_at, run.base))
    run.bench.checkout(commit)
    if found:
        again = run.bench.run_again(tests)
        run.bench.checkout(commit)
        found = tuple(name for name in found if again.whole and again.outcomes.get(name) not in {None, *RED})
        note_tests(run, again, "recheck", success=bool(found))
    if found:
        run.recorder.event(run.task_id, EventKind.UNSTABLE_TESTS, ", ".join(found))
    return found
