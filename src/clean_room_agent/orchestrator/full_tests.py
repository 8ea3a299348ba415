"""The full test command: its baseline before any edit, its rows in the record, and which of its failures are flaky."""

from functools import partial

from msgspec.structs import replace

from clean_room_agent.artifacts.outcomes import EventKind
from clean_room_agent.artifacts.test_results import RED
from clean_room_agent.db.raw.passes import ValidationKind, ValidationRow
from clean_room_agent.errors import ConfigError
from clean_room_agent.languages.python.test_log import read_test_log
from clean_room_agent.languages.test_names import is_bare, is_of_file
from clean_room_agent.languages.test_runners import runner_named
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.test_runs.command_runner import (
    MAX_NAMES,
    has_started,
    passed_again,
    require_judging,
    unstable,
)
from clean_room_agent.orchestrator.test_runs.results import TestRun, has_replaced

RUNS_FOR_NAMES = 2


def run_baseline(run: Run) -> TestRun:
    """Run the full tests before any edit; what fails here is evidence, and the standard for all that follows.

    Raises:
        ConfigError: a test command cannot be started, does not finish in time or finds no tests, or no test can be imported for
            want of what no edit can make good, so that nothing could be judged.
    """
    runner, task_id = run.tests, run.task.task_id
    further: list[TestRun] = []
    entry = run.journal.entry(task_id, "baseline", TestRun)
    tests = entry.value
    if tests is None:
        tests = _complete_base_run(run, runner.run_all("baseline"), further)
        try:
            _require_standard(run, tests, "test_command")
        except ConfigError:
            note_tests(run, tests, "baseline", success=False)
            raise
        entry.keep(tests)
    note_tests(run, tests, "baseline", success=tests.report.whole and tests.end.returncode == 0)
    for one in further:
        note_tests(run, one, "recheck", success=one.report.whole)
    run.progress.trace = tests.trace
    standard: TestRun | None = tests
    if not runner.step_is_full:
        # Attempts are judged by the quick command: they are compared with its own results at the base.
        quick = run.journal.entry(task_id, "baseline_of_steps", TestRun)
        standard = quick.value
        if standard is None:
            runner.checkout(run.commits.base)
            further = []
            standard = _complete_base_run(run, runner.run_step(), further)
            for one in further:
                note_tests(run, one, "recheck", success=one.report.whole)
            _require_standard(run, standard, "step_test_command")
            quick.keep(standard)
    run.progress.at_base = run.progress.accepted = standard
    return tests


def _require_standard(run: Run, found: TestRun, key: str) -> None:
    """Check that a run of the base, of the command `key`, can be the standard for what follows, as `run_baseline` says."""
    runner = run.tests
    require_judging(found, runner.config, key, sandboxed=runner.sandbox is not None)
    if not found.green() and found.end.returncode != 0:
        from clean_room_agent.orchestrator.test_runs.missing_modules import require_imports

        require_imports(found, runner.tree.repo_top, key, run.task.description)


def _complete_base_run(run: Run, found: TestRun, further: list[TestRun]) -> TestRun:
    """The run of the base with all its tests, as far as they can be known; `further` gets the runs that this took."""
    report, base = found.report, run.commits.base
    unloaded = any(is_of_file(name) or is_bare(name) for name in found.red())
    log = read_test_log(run.tests.report)
    is_full = report.whole and not unloaded and not log.missing() and not (found.is_empty and log.died)
    if is_full or not has_started(found):
        return found
    from clean_room_agent.orchestrator.test_runs.base_tests import completed

    return completed(run.tests, found, base, run.commits.tree(base), further.append)


def validation_of(
    run: Run,
    tests: TestRun,
    kind: ValidationKind,
    *,
    task_id: str,
    success: bool,
    newly_failing: tuple[str, ...] = (),
) -> ValidationRow:
    """A test run as the record keeps it, under the id of a pass, or of the task."""
    return ValidationRow(
        attempt_id=None,
        success=success,
        test_output=tests.end.output,
        failing_tests=tests.failing,
        newly_failing=newly_failing,
        task_id=task_id,
        kind=kind,
        command=tests.command,
        exit_code=tests.end.returncode,
        timed_out=tests.end.timed_out,
        tests_run=tests.report.collected,
        tests_passed=tests.report.passed,
        duration_ms=tests.end.duration_ms,
        timestamp=run.recorder.now(),
    )


def note_tests(
    run: Run, tests: TestRun, kind: ValidationKind, *, success: bool, newly_failing: tuple[str, ...] = ()
) -> None:
    """Record a test run of the task as a whole."""
    task_id = run.task.task_id
    run.recorder.validation(
        validation_of(run, tests, kind, task_id=task_id, success=success, newly_failing=newly_failing)
    )


def settle_names(run: Run, before: TestRun, after: TestRun, *, unchanged: str, changed: str) -> bool:
    """Whether tests of `before`, a run of the commit `unchanged`, are missing in `after`, one of `changed`, only because that tree
    itself names them in another way each time. Then they are numbered in all runs from now on, and in the run's progress, and
    the user is told. The tree is tested again at most `RUNS_FOR_NAMES` times. The worktree is at `changed` afterwards.
    """
    runner, progress = run.tests, run.progress
    if progress.runs_for_names >= RUNS_FOR_NAMES or not has_replaced(before, after):
        return False
    progress.runs_for_names += 1
    runner.checkout(unchanged)
    again = runner.run_again(before, "the tests without the change")
    runner.checkout(changed)
    found = runner.names.learn(before, again)
    note_tests(run, again, "recheck", success=bool(found))
    if not found:
        return False
    run.recorder.note(
        f"their names change from run to run, so they are only counted: {', '.join(found[:MAX_NAMES])}"
    )
    numbered = runner.names.numbers(before)
    goals = progress.goals
    progress.goals = replace(
        goals,
        tests=tuple(replace(goal, name=numbered.get(goal.name) or goal.name) for goal in goals.tests),
    )
    progress.at_base, progress.accepted = (
        None if one is None else runner.names.of(one) for one in (progress.at_base, progress.accepted)
    )
    return True


def unstable_tests(run: Run, tests: TestRun, names: tuple[str, ...], commit: str) -> tuple[str, ...]:
    """Those of `names` (newly failing in `tests`, a run of `commit`) that are flaky, sorted; they are recorded.

    A test that passes without the others, and fails again when all of them run, is broken by what runs before it, and
    is not flaky. The worktree is at `commit` afterwards.
    """
    found = unstable(
        names,
        here=partial(_run_again, run, tests, commit),
        base=partial(_run_again, run, tests, run.commits.base),
    )
    run.tests.checkout(commit)
    if found:
        again = run.tests.run_again(tests)
        run.tests.checkout(commit)
        found = tuple(
            name
            for name in found
            if again.report.whole and again.report.outcomes.get(name) not in {None, *RED}
        )
        note_tests(run, again, "recheck", success=bool(found))
    if found:
        run.recorder.event(run.task.task_id, EventKind.UNSTABLE_TESTS, ", ".join(found))
    return found


def _run_again(run: Run, tests: TestRun, commit: str, failing: tuple[str, ...]) -> dict[str, bool]:
    """Which of the failing tests pass at `commit`, without the others."""
    runner = runner_named(tests.report.runner)
    if runner is None or not runner.is_exact:  # others run more than the tests of these names
        return {}
    run.tests.checkout(commit)
    some = run.tests.run_some(tests, failing)
    if some is None:
        return {}
    passed = passed_again(some, failing)
    note_tests(run, some, "recheck", success=all(passed.values()))
    return passed
