"""The end of a run: final tests, a run with the original tests restored, changes to the tests themselves, the verdict,
the branch, and the record's outcome.

For the second run, some changed test files are replaced by the user's own versions. Code that replaces JavaScript's
assertions is found in the diff, since no report would show it.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.names import BRANCHES, short_id
from clean_room_agent.artifacts.outcomes import EventKind, OrchestratorResult, RunStatus
from clean_room_agent.execute.edits.rules import tool_settings
from clean_room_agent.git.commits import FileChange
from clean_room_agent.git.history import ChangedPath
from clean_room_agent.json_values import to_plain
from clean_room_agent.orchestrator.commits import Tree
from clean_room_agent.orchestrator.events import RunFinished
from clean_room_agent.orchestrator.full_tests import note_tests, unstable_tests
from clean_room_agent.orchestrator.run import Run, names_file
from clean_room_agent.orchestrator.task import PlanGiven
from clean_room_agent.orchestrator.testing.deciding import Deciding
from clean_room_agent.orchestrator.testing.gate import (
    FinalVerdict,
    judge_final,
    judge_restored,
    newly_failing,
)
from clean_room_agent.orchestrator.testing.results import TestRun, upgrade_test_run
from clean_room_agent.paths import is_ci, is_test_configuration, is_test_module, is_test_path

Kind = Literal["test", "test support", "test configuration", "CI"]
"""Test support is what tests use: their helpers and data, and the scripts that run them."""
Change = Literal["created", "changed", "deleted"]
CHANGES: Mapping[str, Change] = {"A": "created", "D": "deleted", "M": "changed", "T": "changed"}
SCRIPT = re.compile(r"\.(?:[cm]?[jt]sx?|vue|svelte)\Z")
JUDGES = (
    r"(?:expect|assert|it|test|describe|suite|specify|beforeEach|afterEach|before|after|beforeAll|afterAll)"
)
ASSIGNED = r"\s*(?:\?\?|\|\||&&)?=(?![=>])"
TAMPERING = re.compile(
    rf"(?:\b(?:globalThis|global|window|self)(?:\.|\[['\"`]){JUDGES}\b['\"`]?\]?(?:\.\w+)*{ASSIGNED}"
    rf"|\bObject\.(?:defineProperty|assign)\(\s*(?:globalThis|global|window|self)\b[^)]*\b(?:expect|assert)\b"
    rf"|\brequire\(['\"`](?:node:)?(?:assert|test|chai|vitest|@jest/globals|expect)(?:/\w+)?['\"`]\)(?:\.\w+)+{ASSIGNED}"
    rf"|\b(?:assert|expect)\.(?!extend\b)\w+(?:\.\w+)*{ASSIGNED}"
    rf"|\bprocess\.(?:exit|reallyExit){ASSIGNED})"
)
EXAMPLE = re.compile(r"(?m)^[ \t]*>>>.*(?:\n(?![ \t]*(?:\"{3}|'{3}))[ \t]*\S.*)*")
"""An example in a docstring, with what it gives."""
LANDED = frozenset({RunStatus.COMPLETE, RunStatus.PARTIAL, RunStatus.NEEDS_HUMAN})
"""The statuses of runs whose accepted steps are put on a branch."""


class Touched(Struct, frozen=True, kw_only=True):
    """One file of a result that decides whether tests pass."""

    path: str
    kind: Kind
    change: Change
    asked: bool
    """Whether the user named it: in the task, or in a plan that was given."""

    @property
    def is_new_test(self) -> bool:
        """Whether it is a new file from which runners collect tests."""
        return self.kind == "test" and self.change == "created" and is_test_module(self.path)

    @property
    def left_out(self) -> bool:
        """Whether the last judging run leaves out this change. It leaves out new tests, and test configuration
        and test support that only the model's own plan names. Tests that the plan changes or deletes stay as they are,
        and so do new files next to the tests that no runner collects.
        """
        if self.kind == "test":
            return self.is_new_test
        return self.kind in {"test configuration", "test support"} and not self.asked


def touched_files(
    base: Tree,
    head: Tree,
    changed: Collection[ChangedPath],
    *,
    deciding: Deciding,
    asked: Collection[str],
    task: str,
    tested: Collection[str] = (),
) -> tuple[Touched, ...]:
    """Those among the paths that changed between `base` and `head`, sorted by path.

    `deciding` is what the base shows, `asked` the paths of a plan that the user gave, `tested` are names of tests that ran at
    the base.
    """
    found: dict[str, Touched] = {}
    # A new file may hide one whose deletion is undone to judge: what else is gone is known by then.
    for one in sorted(changed, key=lambda one: (one.status != "D", one.path)):
        change = CHANGES[one.status]
        gone = {
            other.path
            for other in changed
            if other.status == "D" and not (other.path in found and found[other.path].left_out)
        }
        hides = change == "created" and deciding.hides(one.path, gone) != ""
        kind = "test configuration" if hides else _kind(base, head, one.path, deciding)
        if kind is None and change != "created" and _has_other_tests(base, head, one.path, tested, deciding):
            kind = "test"
        if kind is not None:
            named = one.path in asked or names_file(task, one.path)
            found[one.path] = Touched(path=one.path, kind=kind, change=change, asked=named)
    return tuple(sorted(found.values(), key=lambda touched: touched.path))


def restored_changes(
    base: Tree, touched: Collection[Touched], unloaded: Collection[str] = ()
) -> dict[str, FileChange | None]:
    """The changes that undo those of `touched` that are left out, or are in `unloaded`: test files that could not be
    loaded at the base, so that only now their tests can be counted. Empty if there is nothing to undo.
    """
    undone = (one for one in touched if one.left_out or (one.kind == "test" and one.path in unloaded))
    return {one.path: base.change(one.path) for one in undone}


def _kind(base: Tree, head: Tree, path: str, deciding: Deciding) -> Kind | None:
    if is_ci(path):
        return "CI"
    if is_test_configuration(path):
        return "test configuration"
    if deciding.decides(path):
        return "test support"
    if is_test_path(path):
        return "test"
    settings = [tool_settings(path, _text(tree, path)) for tree in (base, head)]
    return "test configuration" if settings[0] != settings[1] else None


def _has_other_tests(base: Tree, head: Tree, path: str, tested: Collection[str], deciding: Deciding) -> bool:
    """Whether tests of the file ran, or it has tests, though its name does not say so; if they are examples in docstrings,
    whether these changed.
    """
    inner = [name.removeprefix(f"{path}::") for name in tested if name.startswith(f"{path}::")]
    module = path.removesuffix(".py").replace("/", ".")
    if inner and all("::" not in one and f"{one}.".startswith(f"{module}.") for one in inner):
        return EXAMPLE.findall(_text(base, path)) != EXAMPLE.findall(_text(head, path))
    return bool(inner) or deciding.holds_tests(path)


def _text(tree: Tree, path: str) -> str:
    data = tree.data(path)
    if data is None:
        return "{}" if path.endswith(".json") else ""
    return data.decode("utf-8", "replace")


def tampering(diff: str) -> tuple[str, ...]:
    """`path: line` for each line that the unified `diff` adds outside of tests and that replaces an assertion function;
    in order.
    """
    return tuple(
        f"{path}: {line.strip()}"
        for path, line in _added(diff.split("\n"))
        if SCRIPT.search(path)
        and not is_test_path(path)
        and not is_test_configuration(path)
        and TAMPERING.search(line)
    )


def _added(lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    path = ""
    for line in lines:
        if line.startswith("+++ "):
            path = line.removeprefix("+++ ").removeprefix("b/").rstrip("\t")
        elif line.startswith("+"):
            yield path, line[1:]


class FullRuns(Struct, frozen=True, kw_only=True):
    """The runs of the full tests that frame a result."""

    baseline: TestRun
    final: TestRun | None = None
    restored: TestRun | None = None
    """The run without the result's new tests and test configuration; None if there was no such run."""


class Solved(Struct, frozen=True, kw_only=True):
    """A run's result, and the test runs that judged it."""

    result: OrchestratorResult
    tests: FullRuns
    verdict: FinalVerdict | None
    touched: tuple[Touched, ...]
    """The files of the result that decide whether tests pass."""
    base_commit: str
    result_commit: str
    """"" if nothing was accepted."""


class _Judged(Struct, frozen=True, kw_only=True):
    final: TestRun
    verdict: FinalVerdict
    touched: tuple[Touched, ...]
    restored: TestRun | None = None


def finish(run: Run, baseline: TestRun, given: PlanGiven) -> Solved:
    """Judge the result, put what may stay on a branch, and record how the run ended."""
    judged = _judge(run, baseline, given) if run.progress.plan.done else None
    with run.journal.interrupts.closing():
        return _landed(run, baseline, judged)


def _landed(run: Run, baseline: TestRun, judged: _Judged | None) -> Solved:
    commits, plan = run.commits, run.progress.plan
    verdict = judged.verdict if judged else None
    run.journal.behind = False
    commits.keep_head()
    status, reason = _status(run, verdict)
    changed = commits.head != commits.base
    branch = ""
    if changed and status in LANDED:
        branch = commits.land(f"{BRANCHES}/{short_id(run.task.task_id)}", run.recorder.landed)
    result = OrchestratorResult(
        task_id=run.task.task_id,
        status=status,
        reason=reason,
        total_parts=plan.total_parts,
        total_steps=plan.total_steps,
        parts_completed=plan.parts_done,
        steps_completed=len(plan.done),
        cumulative_diff=commits.diff(commits.base, commits.head) if changed else "",
        branch=branch,
        passes=tuple(run.recorder.passes),
    )
    run.report_progress()
    commit = commits.head if changed else ""
    run.recorder.ended(status, reason=reason, branch=branch, commit=commit)
    run.recorder.observer.notice(RunFinished(result=result))
    return Solved(
        result=result,
        tests=FullRuns(
            baseline=baseline,
            final=judged.final if judged else None,
            restored=judged.restored if judged else None,
        ),
        verdict=verdict,
        touched=judged.touched if judged else (),
        base_commit=commits.base,
        result_commit=commit,
    )


def _judge(run: Run, baseline: TestRun, given: PlanGiven) -> _Judged:
    """The final run and, if that is green and the result changes the tests, the run with those changes undone."""
    commits, runner = run.commits, run.tests
    final = _final_tests(run, baseline)
    touched = touched_files(
        commits.tree(commits.base),
        commits.tree(),
        commits.changed(commits.base, commits.head),
        deciding=run.deciding,
        asked=given.paths,
        task=run.task.description,
        tested=baseline.report.outcomes,
    )
    planned = [one.path for one in touched if one.kind == "test" and one.change != "created"]
    planned += [one.path for one in commits.changed(commits.base, commits.head) if one.status == "D"]
    kept = not baseline.is_known and _keeps_tests(run, touched)
    verdict = judge_final(baseline, final, runner.config.accept, planned=planned, kept=kept)
    if verdict.newly_failing:
        found = unstable_tests(run, final, verdict.newly_failing, commits.head)
        if found:
            verdict = judge_final(
                baseline, final, runner.config.accept, planned=planned, unstable=found, kept=kept
            )
    replaced = tampering(commits.diff(commits.base, commits.head)) if verdict.complete else ()
    if replaced:
        reason = f"the result replaces what the tests judge by: {'; '.join(replaced[:3])}"
        verdict = replace(verdict, complete=False, reason=reason)
    note_tests(run, final, "final", success=verdict.complete, newly_failing=verdict.newly_failing)
    _note_touched(run, touched, verdict)
    judged = _Judged(final=final, verdict=verdict, touched=touched)
    if _status(run, verdict)[0] is not RunStatus.COMPLETE:
        return judged
    return _judge_restored(run, baseline, judged, planned)


def _keeps_tests(run: Run, touched: Collection[Touched]) -> bool:
    """Whether the result changes no test or test configuration of the base."""
    from clean_room_agent.orchestrator.testing.written_tests import declares_tests

    commits = run.commits
    base, changed = commits.tree(commits.base), commits.changed(commits.base, commits.head)
    return all(one.is_new_test or one.kind == "CI" for one in touched) and not any(
        declares_tests(one.path, base.data(one.path) or b"") for one in changed
    )


def _final_tests(run: Run, baseline: TestRun) -> TestRun:
    """The full tests of the result; the last step's run is used if another would add nothing."""
    commits, runner = run.commits, run.tests
    entry = run.journal.entry(run.task.task_id, "final", TestRun, (commits.head,), upgrade=upgrade_test_run)
    if entry.value is not None:
        return entry.value
    newest = run.progress.accepted if runner.step_is_full and commits.head != commits.base else None
    if newest is not None and not newly_failing(baseline, newest):
        return entry.keep(runner.count_as("final", newest))
    runner.checkout(commits.head)
    return entry.keep(runner.run_all("final"))


def _judge_restored(run: Run, baseline: TestRun, judged: _Judged, planned: Collection[str]) -> _Judged:
    """`judged` with a run of the base's tests and test configuration, if the result changes any."""
    unloaded = {name.partition("::")[0] for name in baseline.report.written}
    if baseline.red() and not baseline.report.named:
        unloaded.update(
            planned
        )  # whether the tests that failed still run shows only where all are as they were
    changes = restored_changes(run.commits.tree(run.commits.base), judged.touched, unloaded)
    why_not = ""
    if not changes:
        why_not = "the result changes none of them"
    elif baseline.is_empty:
        why_not = "no test ran at the start"
    if why_not:
        run.recorder.event(run.task.task_id, EventKind.RESTORED_SKIPPED, why_not)
        return judged
    message = f"The tests as they were before\n\nCra-Task: {run.task.task_id}\n"
    commit = run.commits.commit(changes, message, keep_as="restored")
    entry = run.journal.entry(
        run.task.task_id, "restored", TestRun, (run.commits.head,), upgrade=upgrade_test_run
    )
    restored = entry.value
    if restored is None:
        run.tests.checkout(commit)
        restored = entry.keep(run.tests.run_all("restored"))
    verdict = judge_restored(baseline, judged.final, restored, planned=planned)
    if verdict.newly_failing:
        found = unstable_tests(run, restored, verdict.newly_failing, commit)
        if found:
            verdict = judge_restored(baseline, judged.final, restored, planned=planned, unstable=found)
    note_tests(run, restored, "restored", success=verdict.passed, newly_failing=verdict.newly_failing)
    if verdict.passed:
        return replace(judged, restored=restored)
    reason = f"the tests pass only with what the result changes about them; without {_some(changes)}: {verdict.reason}"
    failed = replace(judged.verdict, complete=False, reason=reason)
    return replace(judged, restored=restored, verdict=failed)


def _note_touched(run: Run, touched: tuple[Touched, ...], verdict: FinalVerdict) -> None:
    if not (touched or verdict.gone or verdict.skipped):
        return
    account = {
        "files": [to_plain(one) for one in touched],
        "gone": verdict.gone,
        "skipped": verdict.skipped,
    }
    run.recorder.event(run.task.task_id, EventKind.TESTS_TOUCHED, json.dumps(account, ensure_ascii=False))


def _some(paths: Collection[str]) -> str:
    shown = sorted(paths)[:3]
    more = len(paths) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _status(run: Run, verdict: FinalVerdict | None) -> tuple[RunStatus, str]:
    stop, failed = run.progress.stop, run.progress.plan.failed
    if stop.question:
        return RunStatus.NEEDS_HUMAN, f"{stop.reason}; {stop.question}"
    if stop.reason:
        return RunStatus.PARTIAL, stop.reason
    if verdict is None:
        why = f"{failed[0].step.id}: {failed[0].why}" if failed else ""
        return RunStatus.FAILED, why or stop.no_plan or "nothing was changed"
    reason = _undone(run) or ("" if verdict.complete else verdict.reason)
    return (RunStatus.PARTIAL, reason) if reason else (RunStatus.COMPLETE, "")


def _undone(run: Run) -> str:
    """Which step or part is missing; "" if none is."""
    plan, no_plan = run.progress.plan, run.progress.stop.no_plan
    if plan.failed:
        first = plan.failed[0]
        return f"step {first.part_id}/{first.step.id} was given up: {first.why}"
    if plan.parts_done < plan.total_parts:
        missing = f"{plan.total_parts - plan.parts_done} of {plan.total_parts} parts are not done"
        return f"{missing}: {no_plan}" if no_plan else missing
    return ""
