"""The gate: from two runs of the tests to a verdict. Pure; nothing here runs anything.

An exit code of 0 is not "tests pass". What counts is the pass set: each test that passed before passes now, by a
report that is whole. `deleted` are files that the plan deletes: their tests may go. `unstable` are names that
`rerun.unstable` found to come and go by themselves: they are out of the gate, and the report names them.
"""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import PurePosixPath

from clean_room_agent.orchestrator.testing.config import Accept
from clean_room_agent.orchestrator.testing.results import TestRun

SHOWN_NAMES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class StepVerdict:
    """Whether an attempt at a step may stay."""

    passed: bool
    newly_failing: tuple[str, ...] = ()
    """Passed after the last accepted step and do not now; sorted. Missing counts as failing."""
    reason: str = ""
    """In one line, also when it passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalVerdict:
    """Whether the result is complete; all names are sorted."""

    complete: bool
    reason: str
    newly_failing: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    """Failed at the baseline and pass now."""
    still_failing: tuple[str, ...] = ()


def judge_step(
    before: TestRun, after: TestRun, *, deleted: Collection[str] = (), unstable: Collection[str] = ()
) -> StepVerdict:
    """Passed when `after` was whole and nothing fails that passed in `before`, the last accepted state's run.

    A test that was red before, or is new, may be red: the step that turns it green may come later. Both should be
    runs of the same command; when they are not, only the tests that both know are compared. For a runner that cannot
    be read, the exit code decides, and with a red `before` only the final run does.
    """
    problem = _unfit(before, after)
    if problem:
        seen = tuple(name for name in newly_failing(before, after, deleted) if name in after.outcomes)
        return StepVerdict(passed=False, newly_failing=seen, reason=problem)
    if after.runner == "unknown":
        return _by_exit_code(before, after)
    newly = tuple(name for name in newly_failing(before, after, deleted) if name not in unstable)
    if newly:
        return StepVerdict(passed=False, newly_failing=newly, reason=f"newly failing: {_some(newly)}")
    reason = _unexplained(before, after) or _lost(before, after, deleted)
    if reason:
        return StepVerdict(passed=False, reason=reason)
    red = len(after.red())
    return StepVerdict(passed=True, reason=f"{after.passed} pass" + (f", {red} still red" if red else ""))


def judge_final(
    baseline: TestRun,
    final: TestRun,
    accept: Accept,
    *,
    deleted: Collection[str] = (),
    unstable: Collection[str] = (),
) -> FinalVerdict:
    """Complete by the rule that `[testing].accept` names.

    all-pass: the command exits 0, no test fails, and each that passed at the baseline passes. no-new-failures: nothing
    fails that did not fail at the baseline, and at least as many tests ran. Failures of unstable tests alone, and the
    exit code that they cause, do not count, but the reason names them. For a runner that cannot be read, exit 0.
    """
    red = final.red()
    newly = set(newly_failing(baseline, final, deleted)) | (red - baseline.red() if final.named else set())
    newly -= set(unstable)
    reason = _unfit(baseline, final)
    if not reason and final.runner == "unknown":
        reason = (
            "" if final.returncode == 0 else f"exit {final.returncode}; the runner's output cannot be read"
        )
    elif not reason and newly:
        reason = f"newly failing: {_some(sorted(newly))}"
    elif not reason:
        fault = _all_pass_fault if accept == "all-pass" else _no_new_fault
        reason = fault(baseline, final, red - set(unstable), deleted)
    wobbling = sorted(red & set(unstable))
    return FinalVerdict(
        complete=not reason,
        reason=reason or _praise(final, wobbling),
        newly_failing=tuple(sorted(newly)),
        fixed=tuple(sorted(name for name in baseline.red() if _is_green(final, name))),
        still_failing=tuple(sorted(red & baseline.red())),
    )


def newly_failing(before: TestRun, after: TestRun, deleted: Collection[str] = ()) -> tuple[str, ...]:
    """The tests that passed in `before` and do not in `after`, sorted; one that is missing does not pass.

    Where a runner names only what fails, these are the names that fail now and did not before; after a run that was
    not whole and told nothing, there are none.
    """
    if not before.whole and not before.outcomes:
        return ()
    if not (before.named and after.named):
        return tuple(sorted(after.red() - before.red()))
    green, same = after.green(), before.command == after.command
    return tuple(
        sorted(
            name
            for name in before.green()
            if name not in green and (same or name in after.outcomes) and not is_in(name, deleted)
        )
    )


def is_in(name: str, files: Collection[str]) -> bool:
    """Whether the test `name` belongs to one of `files` (relative paths), as far as the name tells.

    A node id tells exactly; unittest's dotted names start at the folder where discovery did, so the ends of paths
    are compared; mocha's and node's names tell no file.
    """
    path, _, rest = name.partition("::")
    if rest or path in files:
        return path in files
    if name.partition(" > ")[0] in files:
        return True
    modules = (PurePosixPath(file.removesuffix(".py")).parts for file in files)
    return any(
        name.startswith(".".join(parts[start:]) + ".") for parts in modules for start in range(len(parts))
    )


def _unfit(before: TestRun, after: TestRun) -> str:
    """Why `after` cannot be judged; "" when it can."""
    if after.timed_out or not after.whole:
        return after.problem or "the tests did not come to their end"
    if before.runner not in {"unknown", after.runner}:
        return f"the tests were run by {before.runner} before; this output is not {before.runner}'s"
    if after.runner != "unknown" and not after.outcomes and not after.collected:
        return f"no tests were collected (exit {after.returncode})"
    return ""


def _by_exit_code(before: TestRun, after: TestRun) -> StepVerdict:
    known = "the runner's output is not one that can be read; "
    if after.returncode == 0:
        return StepVerdict(passed=True, reason=known + "exit 0")
    if before.returncode != 0:
        reason = known + f"exit {after.returncode}, as before: the final run decides"
        return StepVerdict(passed=True, reason=reason)
    return StepVerdict(passed=False, reason=known + f"exit {after.returncode}, 0 before")


def _unexplained(before: TestRun, after: TestRun) -> str:
    """The command fails now and no test does: something else that it runs."""
    if before.returncode == 0 and after.returncode != 0 and not after.red():
        return f"the command exits with {after.returncode} though no test failed (0 before)"
    return ""


def _lost(before: TestRun, after: TestRun, deleted: Collection[str]) -> str:
    """Fewer tests pass, where the runner does not say which."""
    comparable = before.command == after.command and not deleted and not (before.named and after.named)
    if comparable and after.passed < before.passed:
        return f"{before.passed} tests passed before, {after.passed} now; the runner does not name them"
    return ""


def _all_pass_fault(baseline: TestRun, final: TestRun, red: frozenset[str], deleted: Collection[str]) -> str:
    if red:
        return f"failing: {_some(sorted(red))}"
    if final.returncode != 0 and not final.red():
        return f"the command exits with {final.returncode} though no test failed"
    if final.passed == 0:
        return "no test passed: all were skipped, or expected to fail"
    return _lost(baseline, final, deleted)


def _no_new_fault(baseline: TestRun, final: TestRun, red: frozenset[str], deleted: Collection[str]) -> str:
    if not baseline.whole and (red or final.returncode != 0):
        return f"the run at the start was not whole, so nothing excuses what fails: {_some(sorted(red))}"
    return (
        _unexplained(baseline, final) or _fewer(baseline, final, deleted) or _lost(baseline, final, deleted)
    )


def _fewer(baseline: TestRun, final: TestRun, deleted: Collection[str]) -> str:
    if baseline.named and final.named:
        had = sum(
            outcome != "skipped" and not is_in(name, deleted) for name, outcome in baseline.outcomes.items()
        )
        has = sum(outcome != "skipped" for outcome in final.outcomes.values())
    else:
        had, has = (0 if deleted else baseline.collected or 0), final.collected or 0
    return f"{had} tests ran at the start, {has} now" if has < had else ""


def _is_green(run: TestRun, name: str) -> bool:
    return run.outcomes.get(name) == "passed" if run.named else run.whole and name not in run.outcomes


def _praise(final: TestRun, wobbling: Collection[str]) -> str:
    if final.runner == "unknown":
        return "exit 0; the runner's output cannot be read"
    words = f"{final.passed} tests pass"
    red = len(final.red()) - len(wobbling)
    words += f", {red} failed before too" if red else ""
    return words + (f"; unstable, not counted: {_some(wobbling)}" if wobbling else "")


def _some(names: Collection[str]) -> str:
    shown = list(names)[:SHOWN_NAMES]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
