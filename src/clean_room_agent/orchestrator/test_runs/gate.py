"""The gate: decides from two runs of the tests whether a change may stay. Pure functions; nothing here runs anything.

An exit code of 0 is not "tests pass". What counts is the set of passing tests: each test that passed before passes now,
by a complete report. For example, the task is about `t.py::b`, which fails at first:

    test      before   A        B        C
    t.py::a   passed   passed   failed   passed
    t.py::b   failed   failed   passed   passed
    t.py::c   passed   passed   passed   -

    A: may stay: "2 pass, 1 still red". Nothing was broken; a later step may turn b green.
    B: may not: "newly failing: t.py::a", although b passes now.
    C: may not: "missing: t.py::c". A test that is missing counts as failing.

As the final result, A is not complete by `accept = "all-pass"`: "failing: t.py::b". By "no-new-failures" it is:
"2 tests pass, 1 failed before too".

`planned` are test files that the plan changes or deletes: their passing tests may disappear, and the verdict names them; a
test that failed before may not, since that would hide the failure. A step sees what the final gate sees: a file of tests
that can no longer be loaded, or that has no test left, is lost whatever its tests were before. `unstable` are the names of
flaky tests: they do not count, and the report names them.

A baseline that did not come to its end is completed by further runs (`base_tests`); where even these could not tell which
tests there are, no result is complete. Of a file that could not be loaded, the tests that its text has must run at the end.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import ClassVar

from msgspec import Struct

from clean_room_agent.artifacts.evidence import FailingTest, same_failure
from clean_room_agent.artifacts.names import counted, listed
from clean_room_agent.execute.attempt_result import Goal, TestedAttempt
from clean_room_agent.languages.test_names import (
    UNLOADED,
    files_meant,
    group_of,
    is_in,
    is_of_file,
    module_or_file,
    spellings,
)
from clean_room_agent.languages.test_runners import HOLDER
from clean_room_agent.orchestrator.run_config import Accept
from clean_room_agent.orchestrator.test_runs.results import (
    TestRun,
    evidence_of,
    exit_without_failure,
    missed_threshold,
    reached_threshold,
)

SHOWN_NAMES = 5
FAILED_BEFORE = "only tests still fail that failed before and are no goal"
"""The beginning of the reason why a result is not complete, where [testing] accept could let these fail."""
UNTESTED = "nothing was tested: the test command finds no tests"


class StepVerdict(Struct, frozen=True, kw_only=True):
    """Whether an attempt at a step may stay."""

    passed: bool
    newly_failing: tuple[str, ...] = ()
    """Passed after the last accepted step and do not now, and files that could be loaded and cannot; sorted. Missing counts as
    failing.
    """
    reason: str = ""
    """In one line, even if it passed."""


class TestFiles(Struct, frozen=True, kw_only=True):
    """What a change does to files of tests, by relative paths."""

    __test__: ClassVar[bool] = False

    created: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    """Changed ones that nobody said should have fewer tests."""


NO_TEST_FILES = TestFiles()


class FinalVerdict(Struct, frozen=True, kw_only=True):
    """Whether the result is complete; all names are sorted."""

    complete: bool
    reason: str
    newly_failing: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    """Ran at the baseline and are missing now."""
    skipped: tuple[str, ...] = ()
    """Passed or failed at the baseline and are skipped now, or expected to fail."""


def judge_step(
    before: TestRun,
    after: TestRun,
    accept: Accept = "all-pass",
    *,
    planned: Collection[str] = (),
    unstable: Collection[str] = (),
    files: TestFiles = NO_TEST_FILES,
    base: TestRun | None = None,
) -> StepVerdict:
    """Passed if `after` was complete, nothing fails that passed in `before`, the run of the last accepted state, and no test is
    lost.

    A test that was red before, or is new, may be red: the step that turns it green may come later. But it has to run: no
    failure of `base`, the run before all steps, may vanish or be skipped. Both should be runs of the same command; if they
    are not, only the tests that both have are compared. For a runner that cannot be read, the exit code decides and, with
    a red `before`, only the final run does. If `accept` is untested, runs without a test pass.
    """
    if _is_untested(before, after, accept):
        return StepVerdict(passed=True, reason=UNTESTED)
    problem = _run_problem(before, after)
    newly = {*newly_failing(before, after, planned), *_newly_unloaded(before, after, files.created)}
    if problem:
        seen = tuple(sorted(name for name in newly if name in after.report.outcomes))
        return StepVerdict(passed=False, newly_failing=seen, reason=problem)
    if after.report.runner == "unknown":
        return _by_exit_code(before, after)
    failing = tuple(sorted(newly - set(unstable)))
    if failing:
        return StepVerdict(passed=False, newly_failing=failing, reason=_newly_in_words(failing, after))
    reason = (
        _unexplained_exit(before, after)
        or _fewer_passing(before, after, planned)
        or _hidden_failures(base or before, after, unstable)
        or _fewer_in_files(before, after, planned, files)
    )
    if reason:
        return StepVerdict(passed=False, reason=reason)
    red = len(after.red())
    return StepVerdict(
        passed=True, reason=f"{after.report.passed} pass" + (f", {red} still red" if red else "")
    )


def judge_final(
    baseline: TestRun,
    final: TestRun,
    accept: Accept,
    *,
    planned: Collection[str] = (),
    unstable: Collection[str] = (),
    goals: Collection[str] = (),
    kept: bool = False,
) -> FinalVerdict:
    """Whether the result is complete by the rule that `[testing].accept` names. all-pass: the command exits 0, or as
    at the baseline though no test failed there, or below a threshold of coverage, no test fails, and each that passed at the baseline passes. no-new-failures: nothing fails that did not fail at the
    baseline, and at least as many tests ran. untested: no run had a test; if one had, as all-pass. Failures of only
    flaky tests, and the exit code that they cause, do not count, but the reason names them. Any other: as all-pass. For a runner
    that cannot be read, exit 0 decides. `goals` are red tests that were added to show that the task is done: they do not count here, nor does
    the exit code that they cause. `kept`: the result changes no test or test configuration of the base, so that these are the
    tests of the base even if they could not be counted there; then none may be skipped.
    """
    if _is_untested(baseline, final, accept):
        return FinalVerdict(complete=True, reason=UNTESTED)
    red = final.red()
    newly = set(newly_failing(baseline, final, planned)) | (
        red - baseline.red() if final.report.named else set()
    )
    apart = {*unstable, *goals}
    newly -= apart
    reason = _run_problem(baseline, final)
    if not reason and final.report.runner == "unknown":
        if final.end.returncode != 0:
            reason = f"exit {final.end.returncode}; the runner's output cannot be read"
    elif not reason and newly:
        reason = _newly_in_words(sorted(newly), final)
    elif not reason:
        fault = _no_new_fault if accept == "no-new-failures" else _all_pass_fault
        reason = fault(baseline, final, red - apart, planned)
    all_ran = final.report.passed + len(red) == final.report.collected
    if not reason and not (kept and all_ran):
        reason = _incomparable_reason(baseline, final, planned) or _unrun_tests(baseline, final, planned)
    unstable_red = sorted(red & set(unstable))
    return FinalVerdict(
        complete=not reason,
        reason=reason or _reason_of_complete(final, unstable_red),
        newly_failing=tuple(sorted(newly)),
        gone=_missing_tests(baseline, final),
        skipped=_newly_skipped(baseline, final),
    )


def judge_restored(
    baseline: TestRun,
    final: TestRun,
    restored: TestRun,
    *,
    planned: Collection[str] = (),
    unstable: Collection[str] = (),
) -> StepVerdict:
    """Passed if the result still passes with the base's tests and test configuration.

    Each test that passed at the baseline, or failed there and passed in `final`, passes in `restored` too, unless it
    belongs to one of `planned`, the test files that the plan changes or deletes. New tests and the exit code do not
    matter here. For a runner that cannot be read, exit 0 decides.
    """
    problem = _run_problem(final, restored)
    if problem:
        return StepVerdict(passed=False, reason=problem)
    if restored.report.runner == "unknown":
        reason = "" if restored.end.returncode == 0 else f"exit {restored.end.returncode}"
        return StepVerdict(passed=not reason, reason=reason)
    if baseline.report.named and final.report.named and restored.report.named:
        due = baseline.green() | (baseline.red() & final.green())
        failing = frozenset(name for name in due - restored.green() if not is_in(name, planned))
        reason = _only_restored(baseline, final, restored)
    else:
        failing = restored.red() - final.red()
        reason = _fewer_passing(baseline, restored, planned)
    lost = tuple(sorted(failing - set(unstable)))
    reason = f"failing: {_list_names(lost)}" if lost else reason
    return StepVerdict(passed=not reason, newly_failing=lost, reason=reason)


def _only_restored(baseline: TestRun, final: TestRun, restored: TestRun) -> str:
    """Which tests that were not counted at the start run only with the tests restored, in words; "" if none."""
    if baseline.report.whole and not baseline.report.written:
        return ""
    only = sorted(name for name in restored.ran() - final.ran() if not HOLDER.search(name))
    return f"not run in the result: {_list_names(only)}" if only else ""


def newly_failing(before: TestRun, after: TestRun, planned: Collection[str] = ()) -> tuple[str, ...]:
    """The tests that passed in `before` and do not in `after`, sorted; one that is missing does not pass.

    If a runner names only failures, these are the names that fail now and did not before; an incomplete run without
    names gives none.
    """
    if not before.report.whole and not before.report.outcomes:
        return ()
    if not (before.report.named and after.report.named):
        return tuple(sorted(after.red() - before.red()))
    lost, outcomes, same = (
        before.green() - after.green(),
        after.report.outcomes,
        before.command == after.command,
    )
    found = (name for name in lost if name in outcomes or (same and not is_in(name, planned)))
    return tuple(sorted(found))


def _is_untested(before: TestRun, after: TestRun, accept: Accept) -> bool:
    return accept == "untested" and before.is_empty and after.is_empty


def _run_problem(before: TestRun, after: TestRun) -> str:
    """Why `after` cannot be judged; "" when it can."""
    if after.end.timed_out or not after.report.whole:
        return after.report.problem or "the tests did not finish"
    watched = _evasion_reason(before, after)
    if watched:
        return watched
    if before.report.runner not in {"unknown", after.report.runner}:
        return f"the tests were run by {before.report.runner} before; this output is not {before.report.runner}'s"
    if after.report.runner != "unknown" and not after.report.outcomes and not after.report.collected:
        return f"no tests were collected (exit {after.end.returncode})"
    return ""


def _evasion_reason(before: TestRun, after: TestRun) -> str:
    """What the test processes did to escape judgement, unless those of `before` did, too."""
    as_before = before.report.whole and before.watched.ended is False
    if after.watched.ended is False and not as_before:
        return "the process of the tests ended early (a call of os._exit, or a signal), so its report does not count"
    seen = before.watched.ended is not None
    if seen and after.watched.ended is None and before.command == after.command:
        return "the tests no longer run in a Python process that can be watched"
    new = sorted({*after.watched.replaced} - {*before.watched.replaced})
    replaced = _list_names([f"{name} by {file}" for name, file in new])
    return f"the code under test replaces parts of the test runner: {replaced}" if new else ""


def _by_exit_code(before: TestRun, after: TestRun) -> StepVerdict:
    known = "the runner's output is not one that can be read; "
    if after.end.returncode == 0:
        return StepVerdict(passed=True, reason=known + "exit 0")
    if before.end.returncode != 0:
        reason = known + f"exit {after.end.returncode}, as before: the final run decides"
        return StepVerdict(passed=True, reason=reason)
    return StepVerdict(passed=False, reason=known + f"exit {after.end.returncode}, 0 before")


def _unexplained_exit(before: TestRun, after: TestRun) -> str:
    """A command that fails now although no test does, because of something else that it runs; "" otherwise."""
    told = exit_without_failure(after) if before.end.returncode == 0 else ""
    return f"the command {told} (0 before)" if told else ""


def ends_as_before(baseline: TestRun, final: TestRun) -> bool:
    """Whether the command fails though no test does, and did so at the baseline, too: there with the same exit code, or, beside
    red tests, because of a coverage that is too low or, since tests failed, was not looked at.
    """
    if not exit_without_failure(final):
        return False
    if exit_without_failure(baseline):
        return final.end.returncode == baseline.end.returncode
    return bool(missed_threshold(final) and baseline.red()) and not reached_threshold(baseline)


def _fewer_passing(before: TestRun, after: TestRun, planned: Collection[str]) -> str:
    """Whether fewer tests pass, in words, if the runner does not say which."""
    comparable = (
        before.command == after.command and not planned and not (before.report.named and after.report.named)
    )
    if comparable and after.report.passed < before.report.passed:
        return f"{counted(before.report.passed, 'test')} passed before, {after.report.passed} now; the runner does not name them"
    return ""


def _all_pass_fault(baseline: TestRun, final: TestRun, red: frozenset[str], planned: Collection[str]) -> str:
    if red:
        return f"failing: {_list_names(sorted(red))}"
    told = exit_without_failure(final)
    if told and not ends_as_before(baseline, final):
        return f"the command {told}"
    if final.report.passed == 0:
        return "no test passed: all were skipped, or expected to fail"
    return _hidden_failures(baseline, final) or _fewer_passing(baseline, final, planned)


def _no_new_fault(baseline: TestRun, final: TestRun, red: frozenset[str], planned: Collection[str]) -> str:
    if not baseline.report.whole and (red or final.end.returncode != 0):
        return f"the run at the start was incomplete, so no failure is excused: {_list_names(sorted(red))}"
    return (
        _unexplained_exit(baseline, final)
        or _fewer_running(baseline, final, planned)
        or _hidden_failures(baseline, final)
        or _fewer_passing(baseline, final, planned)
    )


def _newly_unloaded(before: TestRun, after: TestRun, created: Collection[str]) -> Iterator[str]:
    """The files that fail as a whole and did not before; a new one may wait for what it tests."""
    for name in after.red() - before.red():
        ends = tuple(f"/{path}" for path in files_meant(name))
        if is_of_file(name) and not any(f"/{path}".endswith(ends) for path in created):
            yield name


def _fewer_in_files(before: TestRun, after: TestRun, planned: Collection[str], files: TestFiles) -> str:
    """Which changed files lost tests that nobody wanted gone, or all of their tests, in words; "" if none."""
    if not (before.report.named and after.report.named and before.command == after.command):
        return ""
    for path in sorted(set(planned) - {*files.created, *files.deleted}):
        had, has = _functions_in(path, before), _functions_in(path, after)
        if had and not has:
            return f"{path} has no test any more: {_list_names(sorted(had))}"
        lost = sorted(had - has)
        if path in files.kept and len(has) < len(had) and lost:
            return f"{path} had {counted(len(had), 'test')} and has {len(has)}, without {_list_names(lost)}"
    return ""


def _functions_in(path: str, run: TestRun) -> set[str]:
    """The tests of the file, cases of one counted once."""
    return {
        name.partition("[")[0]
        for name in run.report.outcomes
        if is_in(name, (path,)) and not is_of_file(name) and not HOLDER.search(name)
    }


def _hidden_failures(baseline: TestRun, final: TestRun, unstable: Collection[str] = ()) -> str:
    """Which failing tests the result no longer runs, in words; "" if none."""
    hidden = sorted(
        baseline.red() & {*_missing_tests(baseline, final), *_newly_skipped(baseline, final)} - set(unstable)
    )
    if hidden:
        return f"failed at the start, and no longer run: {_list_names(hidden)}"
    named = baseline.report.named and final.report.named
    if baseline.red() and not named and _not_run(final) > _not_run(baseline):
        return "more tests are skipped than at the start, where some failed; the runner does not name them"
    return ""


def _not_run(run: TestRun) -> int:
    return (run.report.collected or 0) - run.report.passed - len(run.red())


def _incomparable_reason(baseline: TestRun, final: TestRun, planned: Collection[str]) -> str:
    """Why the tests of the base cannot be compared with those of the result, in words; "" if they can."""
    before = baseline.report
    if before.runner == "unknown" and final.report.runner != "unknown":
        return f"the tests could not be counted before the change: no runner reported any (exit {baseline.end.returncode})"
    if not before.whole and not (before.counted and final.report.named):
        return f"the tests could not be counted before the change: {before.problem or 'they did not finish'}"
    unknown = (*before.uncounted, *(() if final.report.named else before.written))
    changed = sorted(name for name in unknown if is_in(name, planned))
    if changed:
        return f"could not be loaded at the start, and changed: {_list_names(changed)}"
    as_before = _as_before(baseline, final, planned)
    for name in (one for one in before.uncounted if one not in as_before):
        below = tests_below(name, final)
        skipped = below - final.ran()
        if new := sorted(skipped - baseline.report.outcomes.keys()):
            return f"could not be loaded at the start, and skipped: {_list_names(new)}"
        if final.report.named and is_of_file(name) and skipped == below:
            return f"could not be loaded at the start, and runs no test now: {name}"
    return ""


def tests_below(name: str, run: TestRun) -> frozenset[str]:
    """The tests of a file or folder that is named as a whole."""
    begins = tuple(f"{name.removeprefix(UNLOADED)}{end}" for end in ("::", " > ", ".", "/"))
    return frozenset(test for test in run.report.outcomes if test.startswith(begins))


def _unrun_tests(baseline: TestRun, final: TestRun, planned: Collection[str]) -> str:
    """Which tests of files that could not be loaded at the start do not run, in words; "" if none.

    Only files count that were run, at the start or now, or that `planned` names; not those that cannot be loaded now, either.
    """
    written = baseline.report.written
    if not written or not final.report.named:
        return ""
    present = {name.partition("[")[0] for name in final.report.outcomes}
    ran = {name.partition("[")[0] for name in final.ran()}
    files = {module_or_file(name) for name in (*present, *baseline.report.outcomes)}
    files -= {module_or_file(name) for name in _as_before(baseline, final, planned)}
    lost = [
        name
        for name, runs in written.items()
        if (name.partition("::")[0] in planned or not files.isdisjoint(spellings(name.partition("::")[0])))
        and (ran if runs else present).isdisjoint(spellings(name))
    ]
    return f"could not be loaded at the start, and do not run now: {_list_names(lost)}" if lost else ""


def _as_before(baseline: TestRun, final: TestRun, planned: Collection[str]) -> frozenset[str]:
    """What could not be loaded at the start and cannot be now, apart from `planned`: it is red, and counts as that."""
    both = baseline.red() & final.red()
    return frozenset(name for name in both if HOLDER.search(name) and not is_in(name, planned))


def _fewer_running(baseline: TestRun, final: TestRun, planned: Collection[str]) -> str:
    if baseline.report.named and final.report.named:
        had = sum(
            outcome != "skipped" and not is_in(name, planned)
            for name, outcome in baseline.report.outcomes.items()
        )
        has = sum(outcome != "skipped" for outcome in final.report.outcomes.values())
    else:
        had, has = (0 if planned else baseline.report.collected or 0), final.report.collected or 0
    return f"{counted(had, 'test')} ran at the start, {has} now" if has < had else ""


def _missing_tests(baseline: TestRun, final: TestRun) -> tuple[str, ...]:
    """The tests that ran at the baseline and are missing, sorted; a file, class or hook that could not be loaded there
    has been replaced by its tests.
    """
    if not (baseline.report.named and final.report.named and baseline.command == final.command):
        return ()
    missing = baseline.ran() - final.report.outcomes.keys()
    return tuple(sorted(name for name in missing if not HOLDER.search(name)))


def _newly_skipped(baseline: TestRun, final: TestRun) -> tuple[str, ...]:
    """The tests that passed or failed at the baseline and do neither now, sorted."""
    return tuple(sorted((baseline.ran() & final.report.outcomes.keys()) - final.ran()))


def _reason_of_complete(final: TestRun, unstable_red: Collection[str]) -> str:
    if final.report.runner == "unknown":
        return "exit 0; the runner's output cannot be read"
    words = counted(final.report.passed, "test passes", "tests pass")
    red = len(final.red()) - len(unstable_red)
    words += f", {red} failed before too" if red else ""
    return words + (f"; unstable, not counted: {_list_names(unstable_red)}" if unstable_red else "")


def _newly_in_words(names: Sequence[str], after: TestRun) -> str:
    missing = [name for name in names if after.report.named and name not in after.report.outcomes]
    failing = [name for name in names if name not in missing]
    told = [f"newly failing: {_list_names(failing)}"] if failing else []
    return "; ".join([*told, f"missing: {_list_names(missing)}"] if missing else told)


def _list_names(names: Collection[str]) -> str:
    return listed(names, SHOWN_NAMES)


def left_undone(base: TestRun, now: TestRun) -> frozenset[str]:
    """The red tests that count against a change as the last one: those beside tests that were red at the base and are
    not now, or all of them if there are none such. Tests elsewhere may be red for other reasons.
    """
    turned = {group_of(name) for name in base.red() - now.red()}
    return frozenset(name for name in now.red() if not turned or group_of(name) in turned)


def undone_in_words(base: TestRun, now: TestRun) -> str:
    """How much a last change left undone."""
    if base.red() <= now.red():
        return "no goal test passes yet"
    return f"{len(left_undone(base, now))} of them beside tests that pass now"


def passes(name: str, after: TestRun) -> bool:
    """Whether a test that is not red passed. A name for a file or class that could not be loaded is replaced by its
    tests, and some runners name only failures.
    """
    if name in after.report.outcomes:
        return after.report.outcomes[name] == "passed"
    return after.report.whole and (not after.report.named or HOLDER.search(name) is not None)


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
