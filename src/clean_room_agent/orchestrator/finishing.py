"""The end of a run: the final tests, the tests restored, the verdict, the branch, the last words of the record."""

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace

from clean_room_agent.artifacts.event_kinds import EventKind
from clean_room_agent.artifacts.ids import short_id
from clean_room_agent.artifacts.outcomes import OrchestratorResult, RunStatus
from clean_room_agent.git.commits import commit_files
from clean_room_agent.git.history import changed_paths, diff
from clean_room_agent.git.repository import author_of
from clean_room_agent.git.result_refs import keep_commit, land, update_ref
from clean_room_agent.orchestrator.events import RunFinished
from clean_room_agent.orchestrator.full_tests import note_tests, unstable_tests
from clean_room_agent.orchestrator.run import PlanGiven, Run
from clean_room_agent.orchestrator.testing.command_files import scripts_of
from clean_room_agent.orchestrator.testing.gate import (
    FinalVerdict,
    judge_final,
    judge_restored,
    newly_failing,
)
from clean_room_agent.orchestrator.testing.results import TestRun
from clean_room_agent.orchestrator.testing.tamper_detection import tampering
from clean_room_agent.orchestrator.testing.test_file_changes import Touched, restored_changes, touched_files

LANDED = frozenset({RunStatus.COMPLETE, RunStatus.PARTIAL, RunStatus.NEEDS_HUMAN})
"""How a run ended whose accepted steps stand as a branch."""
BRANCHES = "cra"
"""The folder of the branches that results are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """A run's result with the test runs that frame it."""

    result: OrchestratorResult
    baseline: TestRun
    final: TestRun | None
    restored: TestRun | None
    """The run without the result's new tests and test configuration; None where there was none."""
    verdict: FinalVerdict | None
    touched: tuple[Touched, ...]
    """The files of the result that decide whether tests pass."""
    base_commit: str
    result_commit: str
    """"" where nothing was accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    final: TestRun
    verdict: FinalVerdict
    touched: tuple[Touched, ...]
    restored: TestRun | None = None


def finish(run: Run, baseline: TestRun, given: PlanGiven) -> Solved:
    """The result is judged, and stands as a branch where something of it may stay; the record says how it ended."""
    at = run.progress
    judged = _judge(run, baseline, given) if at.done else None
    with run.interrupts.closing():
        return _landed(run, baseline, judged)


def keep_head(run: Run) -> None:
    """`refs/cra/<task>/head` names the newest accepted commit."""
    at = run.progress
    if at.head not in {run.base, at.kept_head}:
        update_ref(run.repo, f"refs/cra/{run.task_id}/head", at.head, expected=at.kept_head)
        at.kept_head = at.head


def _landed(run: Run, baseline: TestRun, judged: _Judged | None) -> Solved:
    at = run.progress
    verdict = judged.verdict if judged else None
    run.journal.behind = False
    keep_head(run)
    status, reason = _status(run, verdict)
    changed = at.head != run.base
    branch = ""
    if changed and status in LANDED:
        name = f"{BRANCHES}/{short_id(run.task_id)}"
        branch = land(run.repo, name, at.head, before=run.recorder.landed)
    result = OrchestratorResult(
        task_id=run.task_id,
        status=status,
        reason=reason,
        total_parts=at.total_parts,
        total_steps=at.total_steps,
        parts_completed=at.parts_done,
        steps_completed=len(at.done),
        cumulative_diff=diff(run.repo, run.base, at.head) if changed else "",
        branch=branch,
        passes=tuple(run.recorder.passes),
    )
    run.report_progress()
    commit = at.head if changed else ""
    run.recorder.ended(status, reason=reason, branch=branch, commit=commit)
    run.observer.notice(RunFinished(result=result))
    return Solved(
        result=result,
        baseline=baseline,
        final=judged.final if judged else None,
        restored=judged.restored if judged else None,
        verdict=verdict,
        touched=judged.touched if judged else (),
        base_commit=run.base,
        result_commit=commit,
    )


def _judge(run: Run, baseline: TestRun, given: PlanGiven) -> _Judged:
    """The final run, and, where that is green and the result changes what judges it, the one with that undone."""
    at, bench = run.progress, run.bench

    def run_all() -> TestRun:
        newest = at.accepted if bench.step_is_full and at.head != run.base else None
        if newest is not None and not newly_failing(baseline, newest):
            return bench.count_as("final", newest)
        bench.checkout(at.head)
        return bench.run_all("final")

    final = run.journal.once(run.task_id, "final", TestRun, run_all, (at.head,))
    touched = touched_files(
        run.repo,
        run.base,
        at.head,
        scripts=scripts_of(bench.commands, run.tree().paths),
        asked=_asked(given),
        task=run.task,
    )
    planned = [one.path for one in touched if one.kind == "test" and one.change != "created"]
    planned += [one.path for one in changed_paths(run.repo, run.base, at.head) if one.status == "D"]
    verdict = judge_final(baseline, final, bench.config.accept, planned=planned)
    if verdict.newly_failing:
        wobbling = unstable_tests(run, final, verdict.newly_failing, at.head)
        if wobbling:
            verdict = judge_final(baseline, final, bench.config.accept, planned=planned, unstable=wobbling)
    replaced = tampering(diff(run.repo, run.base, at.head)) if verdict.complete else ()
    if replaced:
        reason = f"the result replaces what the tests judge by: {'; '.join(replaced[:3])}"
        verdict = replace(verdict, complete=False, reason=reason)
    note_tests(run, final, "final", success=verdict.complete, newly_failing=verdict.newly_failing)
    _note_touched(run, touched, verdict)
    judged = _Judged(final=final, verdict=verdict, touched=touched)
    if _status(run, verdict)[0] is not RunStatus.COMPLETE:
        return judged
    return _judge_restored(run, baseline, judged, planned)


def _judge_restored(run: Run, baseline: TestRun, judged: _Judged, planned: Collection[str]) -> _Judged:
    """`judged` with the run that the base's tests and test configuration give, where the result changes any."""
    changes = restored_changes(run.repo, run.base, judged.touched)
    why_not = ""
    if not changes:
        why_not = "the result changes none of them"
    elif not baseline.outcomes and not baseline.passed and baseline.runner != "unknown":
        why_not = "no test ran at the start"
    if why_not:
        run.recorder.event(run.task_id, EventKind.RESTORED_SKIPPED, why_not)
        return judged
    message = f"The tests as they were before\n\nCra-Task: {run.task_id}\n"
    with run.interrupts.shield():
        made = commit_files(run.repo, run.progress.head, changes, message, author_of(run.repo))
        commit = keep_commit(run.repo, f"refs/cra/{run.task_id}/restored", made)

    def run_restored() -> TestRun:
        run.bench.checkout(commit)
        return run.bench.run_all("restored")

    restored = run.journal.once(run.task_id, "restored", TestRun, run_restored, (run.progress.head,))
    verdict = judge_restored(baseline, judged.final, restored, planned=planned)
    if verdict.newly_failing:
        wobbling = unstable_tests(run, restored, verdict.newly_failing, commit)
        if wobbling:
            verdict = judge_restored(baseline, judged.final, restored, planned=planned, unstable=wobbling)
    note_tests(run, restored, "restored", success=verdict.passed, newly_failing=verdict.newly_failing)
    if verdict.passed:
        return replace(judged, restored=restored)
    reason = f"the tests pass only with what the result changes about them; without {_some(changes)}: {verdict.reason}"
    failed = replace(judged.verdict, complete=False, reason=reason)
    return replace(judged, restored=restored, verdict=failed)


def _asked(given: PlanGiven) -> frozenset[str]:
    """The paths that a plan of the user's names."""
    paths = (
        {path for part in given.meta_plan.parts for path in part.affected_files} if given.meta_plan else set()
    )
    if given.single is not None:
        paths.update(target.path for step in given.single.steps for target in step.target_files)
    return frozenset(paths)


def _note_touched(run: Run, touched: tuple[Touched, ...], verdict: FinalVerdict) -> None:
    if not (touched or verdict.gone or verdict.skipped):
        return
    account = {
        "files": [asdict(one) for one in touched],
        "gone": verdict.gone,
        "skipped": verdict.skipped,
    }
    run.recorder.event(run.task_id, EventKind.TESTS_TOUCHED, json.dumps(account, ensure_ascii=False))


def _some(paths: Collection[str]) -> str:
    shown = sorted(paths)[:3]
    more = len(paths) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _status(run: Run, verdict: FinalVerdict | None) -> tuple[RunStatus, str]:
    at = run.progress
    if at.question:
        return RunStatus.NEEDS_HUMAN, f"{at.stop_reason}; {at.question}"
    if at.stop_reason:
        return RunStatus.PARTIAL, at.stop_reason
    if verdict is None:
        why = f"{at.failed[0].step.id}: {at.failed[0].why}" if at.failed else ""
        return RunStatus.FAILED, why or at.no_plan_reason or "nothing was changed"
    reason = _undone(run) or ("" if verdict.complete else verdict.reason)
    return (RunStatus.PARTIAL, reason) if reason else (RunStatus.COMPLETE, "")


def _undone(run: Run) -> str:
    """Which step or part is missing; "" where none is."""
    at = run.progress
    if at.failed:
        first = at.failed[0]
        return f"step {first.part_id}/{first.step.id} was given up: {first.why}"
    if at.parts_done < at.total_parts:
        missing = f"{at.total_parts - at.parts_done} of {at.total_parts} parts are not done"
        return f"{missing}: {at.no_plan_reason}" if at.no_plan_reason else missing
    return ""
