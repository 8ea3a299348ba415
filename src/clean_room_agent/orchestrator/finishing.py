"""The end of a run: final tests, a run with the original tests restored, changes to the tests themselves, the verdict,
the branch, and the record's outcome.

For the second run, some changed test files are replaced by the user's own versions (`changed_tests.py`).
"""

import json
from collections.abc import Collection
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.goals import GoalOutcome, Goals
from clean_room_agent.artifacts.names import BRANCHES, listed, short_id
from clean_room_agent.artifacts.outcomes import EventKind, OrchestratorResult, RunStatus
from clean_room_agent.json_values import to_plain
from clean_room_agent.languages.test_runners import HOLDER
from clean_room_agent.orchestrator.changed_tests import Touched, restored_changes, tampering, touched_files
from clean_room_agent.orchestrator.events import RunFinished
from clean_room_agent.orchestrator.full_tests import note_tests, settle_names, unstable_tests
from clean_room_agent.orchestrator.goal_verdict import (
    CommandRun,
    changed_goals,
    goal_outcomes,
    related_doubt,
    repository_goals,
    still_red,
    verdict_of,
)
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.test_runs.gate import (
    FAILED_BEFORE,
    SHOWN_NAMES,
    UNTESTED,
    FinalVerdict,
    ends_as_before,
    judge_final,
    judge_restored,
    newly_failing,
)
from clean_room_agent.orchestrator.test_runs.results import TestRun, exit_without_failure, missed_threshold
from clean_room_agent.paths import is_test_path

MAX_APART = 100
"""Goal tests that are run without the others; of more, the command could be too long."""
LANDED = frozenset({RunStatus.COMPLETE, RunStatus.UNPROVEN, RunStatus.PARTIAL, RunStatus.NEEDS_HUMAN})
"""The statuses of runs whose accepted steps are put on a branch."""


class JudgedResult(Struct, frozen=True, kw_only=True):
    """What the full tests said of the accepted steps together."""

    final: TestRun
    verdict: FinalVerdict
    touched: tuple[Touched, ...]
    """The files of the result that decide whether tests pass."""
    restored: TestRun | None = None
    """The run without the result's new tests and test configuration; None if there was no such run."""
    restored_commit: str = ""
    """What `restored` ran on."""
    evidence: tuple[GoalOutcome, ...] = ()


class Solved(Struct, frozen=True, kw_only=True):
    """A run's result, and how it was judged."""

    result: OrchestratorResult
    judged: JudgedResult | None
    """None if nothing was accepted."""
    base_commit: str
    result_commit: str
    """"" if nothing was accepted."""


def finish(run: Run, baseline: TestRun) -> Solved:
    """Judge the result, put what may stay on a branch, and record how the run ended."""
    judged = _judge_result(run, baseline) if run.progress.plan.done else None
    with run.journal.interrupts.shield(is_last=True):
        return _land_result(run, judged)


def _land_result(run: Run, judged: JudgedResult | None) -> Solved:
    commits, plan = run.commits, run.progress.plan
    run.journal.behind = False
    commits.keep_head()
    status, reason = _final_status(run, judged)
    changed = _has_changes(run)
    branch, commit = "", commits.head if changed else ""
    if changed and status in LANDED:
        commit = _commit_to_land(run)
        branch = commits.land(f"{BRANCHES}/{short_id(run.task.task_id)}", run.recorder.landed, commit)
    result = OrchestratorResult(
        task_id=run.task.task_id,
        status=status,
        reason=reason,
        total_parts=plan.total_parts,
        total_steps=plan.total_steps,
        parts_completed=plan.parts_done,
        steps_completed=len(plan.done),
        cumulative_diff=commits.diff(commits.base, commit) if changed else "",
        branch=branch,
        passes=tuple(run.recorder.passes),
        evidence=judged.evidence if judged else (),
    )
    run.report_progress()
    run.recorder.ended(status, reason=reason, branch=branch, commit=commit, evidence=result.evidence)
    run.recorder.observer.notice(RunFinished(result=result))
    return Solved(result=result, judged=judged, base_commit=commits.base, result_commit=commit)


def _commit_to_land(run: Run) -> str:
    """The commit for the branch: the head, or that without the goal tests that were added."""
    goals, done = run.progress.goals.commit, run.progress.plan.done
    if not goals or (run.limits.evidence.keep and run.progress.goals.deciding):
        return run.commits.head
    from clean_room_agent.orchestrator.goals import without_goal_tests

    accepted = [one.commit for one in done if one.commit != run.commits.head]
    return without_goal_tests(run.commits, goals, (*accepted, run.commits.head))


def _judge_result(run: Run, baseline: TestRun) -> JudgedResult:
    """The final run; if that is green and the result changes the tests, the run with those changes undone; and what became
    of the goal tests.
    """
    commits, runner, goals = run.commits, run.tests, run.progress.goals
    baseline, before = runner.names.of(baseline), _starting_commit(run)
    final = _final_tests(run, baseline)
    if runner.config.format_command is not None:
        from clean_room_agent.orchestrator.formatting import format_result

        final = format_result(run, final, before)
    final = runner.names.of(final)
    changed = commits.changed(before, commits.head)
    touched = touched_files(
        commits.tree(before),
        commits.tree(),
        changed,
        deciding=run.deciding,
        asked=run.progress.asked,
        task=run.task.description,
        tested=baseline.report.outcomes,
    )
    planned = [one.path for one in touched if one.kind == "test" and one.change != "created"]
    planned += [one.path for one in changed if one.status == "D"]
    kept = not baseline.is_known and _keeps_tests(run, touched)
    judge = partial(judge_final, baseline, final, planned=planned, goals=still_red(goals, final), kept=kept)
    verdict = judge(runner.config.accept)
    if not verdict.complete and settle_names(run, baseline, final, unchanged=before, changed=commits.head):
        return _judge_result(run, baseline)
    if verdict.newly_failing:
        found = unstable_tests(run, final, verdict.newly_failing, commits.head)
        if found:
            judge = partial(judge, unstable=found)
            verdict = judge(runner.config.accept)
    red = final.red()
    if not verdict.complete and red and goals.deciding and not red & {goal.name for goal in goals.tests}:
        excused = judge("no-new-failures")
        named = listed(sorted(red), SHOWN_NAMES)
        if excused.complete and runner.config.accept == "all-pass":
            verdict = replace(verdict, reason=f"{FAILED_BEFORE}: {named}")
        elif excused.complete:
            verdict = excused
            run.recorder.note(f"still failing, as before the change, and no goal of the task: {named}")
    replaced = tampering(commits.diff(before, commits.head)) if verdict.complete else ()
    if replaced:
        reason = f"the result replaces what the tests judge by: {'; '.join(replaced[:3])}"
        verdict = replace(verdict, complete=False, reason=reason)
    if verdict.complete and ends_as_before(baseline, final):
        seen = exit_without_failure(baseline) or missed_threshold(baseline)
        before = "it did so before the change, too" if seen else "before the change, tests failed first"
        run.recorder.note(f"the test command {exit_without_failure(final)}; {before}")
    note_tests(run, final, "final", success=verdict.complete, newly_failing=verdict.newly_failing)
    _note_touched(run, touched, verdict)
    judged = JudgedResult(final=final, verdict=verdict, touched=touched)
    if _unfinished_status(run, judged) is None:
        judged = _judge_restored(run, baseline, judged, planned)
    return _judge_goals(run, baseline, judged)


def _starting_commit(run: Run) -> str:
    """The commit from which the run's attempts were made: the snapshot, or that with the goal tests added."""
    return run.progress.goals.commit or run.commits.base


def _has_changes(run: Run) -> bool:
    return run.commits.head not in {run.commits.base, _starting_commit(run)}


def _keeps_tests(run: Run, touched: Collection[Touched]) -> bool:
    """Whether the result changes no test or test configuration of the base."""
    from clean_room_agent.orchestrator.test_runs.base_tests import declares_tests

    commits, before = run.commits, _starting_commit(run)
    base, changed = commits.tree(before), commits.changed(before, commits.head)
    return all(one.is_new_test or one.kind == "CI" for one in touched) and not any(
        declares_tests(one.path, base.data(one.path) or b"") for one in changed
    )


def _final_tests(run: Run, baseline: TestRun) -> TestRun:
    """The full tests of the result; the last step's run is used if another would add nothing."""
    commits, runner = run.commits, run.tests
    entry = run.journal.entry(run.task.task_id, "final", TestRun, (commits.head,))
    if entry.value is not None:
        return entry.value
    newest = run.progress.accepted if runner.step_is_full and _has_changes(run) else None
    if newest is not None and not newly_failing(baseline, newest):
        return entry.keep(runner.count_as("final", newest))
    runner.checkout(commits.head)
    return entry.keep(runner.run_all("final"))


def _judge_restored(
    run: Run, baseline: TestRun, judged: JudgedResult, planned: Collection[str]
) -> JudgedResult:
    """`judged` with a run of the base's tests and test configuration, if the result changes any."""
    unloaded = {name.partition("::")[0] for name in baseline.report.written}
    if baseline.red() and not baseline.report.named:
        unloaded.update(
            planned
        )  # whether the tests that failed still run shows only where all are as they were
    changes = restored_changes(run.commits.tree(_starting_commit(run)), judged.touched, unloaded)
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
    entry = run.journal.entry(run.task.task_id, "restored", TestRun, (run.commits.head,))
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
    judged = replace(judged, restored=restored, restored_commit=commit)
    if verdict.passed:
        return judged
    reason = f"the tests pass only with what the result changes about them; without {listed(sorted(changes), 3)}: {verdict.reason}"
    failed = replace(judged.verdict, complete=False, reason=reason)
    return replace(judged, verdict=failed)


def _judge_goals(run: Run, baseline: TestRun, judged: JudgedResult) -> JudgedResult:
    """`judged` with what became of the goal tests: each has to pass in the result, also with the tests as
    they were before. A file that has goal tests, and that the result changes, is restored for one more run of these.
    """
    goals, again = _goals_or_red_tests(run, baseline), None
    # Code and its tests in one file cannot be told apart: without its change, the code is not as the result has it.
    changed = {
        one.path
        for one in judged.touched
        if one.kind == "test" and one.change != "created" and is_test_path(one.path)
    }
    names = changed_goals(goals, changed)
    if judged.verdict.complete and names:
        again = (names, _run_goals_restored(run, judged, names, changed))
    others = [judged.restored] if judged.restored else []
    ends = _command_runs(run, baseline, judged)
    evidence = goal_outcomes(goals, baseline, judged.final, others, again, ends)
    return replace(judged, evidence=evidence)


def _goals_or_red_tests(run: Run, baseline: TestRun) -> Goals:
    """The goal tests; where none was found that decides, the red tests of the base: those that turn green show something."""
    goals = run.progress.goals
    if goals.deciding:
        return goals
    return replace(goals, tests=(*repository_goals(baseline).tests, *goals.tests))


def _run_goals_restored(
    run: Run, judged: JudgedResult, names: tuple[str, ...], changed: Collection[str]
) -> TestRun:
    """The run of these goal tests, or of all tests, on the result with the `changed` test files as they were before."""
    commits = run.commits
    undone = restored_changes(commits.tree(_starting_commit(run)), judged.touched, changed)
    message = f"The goal tests as they were before\n\nCra-Task: {run.task.task_id}\n"
    commit = commits.commit(undone, message, keep_as="goals-restored")
    entry = run.journal.entry(run.task.task_id, "goals_restored", TestRun, (commits.head, *names))
    again = entry.value
    if again is None:
        run.tests.checkout(commit)
        # A file that could not be loaded has no test of its own name.
        are_tests = len(names) <= MAX_APART and not any(HOLDER.search(name) for name in names)
        some = run.tests.run_some(judged.final, names, "goal") if are_tests else None
        again = entry.keep(some or run.tests.run_all("goal"))
    note_tests(run, again, "recheck", success=again.report.whole)
    return again


def _command_runs(run: Run, baseline: TestRun, judged: JudgedResult) -> dict[str, list[CommandRun]]:
    """How the goals' commands end on the result, and on it with the tests restored if there was such a run."""
    commands = {goal.command for goal in run.progress.goals.tests} - {"", baseline.command}
    trees = {"final": run.commits.head, "restored": judged.restored_commit}
    return {
        command: [_command_run(run, command, which, tree) for which, tree in trees.items() if tree]
        for command in sorted(commands)
    }


def _command_run(run: Run, command: str, which: str, commit: str) -> CommandRun:
    entry = run.journal.entry(
        run.task.task_id, f"goal:{which}:{command}", CommandRun, (run.commits.head, commit)
    )
    if entry.value is not None:
        return entry.value
    run.tests.checkout(commit)
    code, output = run.tests.run_apart(command)
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return entry.keep(CommandRun(returncode=code, line=lines[-1] if lines else ""))


def _note_touched(run: Run, touched: tuple[Touched, ...], verdict: FinalVerdict) -> None:
    if not (touched or verdict.gone or verdict.skipped):
        return
    account = {"files": [to_plain(one) for one in touched], "gone": verdict.gone, "skipped": verdict.skipped}
    run.recorder.event(run.task.task_id, EventKind.TESTS_TOUCHED, json.dumps(account, ensure_ascii=False))


def _final_status(run: Run, judged: JudgedResult | None) -> tuple[RunStatus, str]:
    unfinished = _unfinished_status(run, judged)
    if unfinished is not None or judged is None:
        return unfinished or (RunStatus.FAILED, "")
    untested = UNTESTED if judged.verdict.reason == UNTESTED else ""
    doubt = run.progress.doubt or related_doubt(run.progress.goals, judged.final)
    return verdict_of(judged.evidence, untested=untested, doubt=doubt)


def _unfinished_status(run: Run, judged: JudgedResult | None) -> tuple[RunStatus, str] | None:
    """The status of a result that is not whole, or in which something fails, and why; None for any other."""
    stop, failed = run.progress.stop, run.progress.plan.failed
    if stop.question:
        return RunStatus.NEEDS_HUMAN, f"{stop.reason}; {stop.question}"
    if stop.reason:
        return RunStatus.PARTIAL, stop.reason
    if judged is None:
        why = f"{failed[0].step.id}: {failed[0].why}" if failed else ""
        return RunStatus.FAILED, why or stop.no_plan or "nothing was changed"
    reason = _missing_work(run) or ("" if judged.verdict.complete else judged.verdict.reason)
    return (RunStatus.PARTIAL, reason) if reason else None


def _missing_work(run: Run) -> str:
    """Which step or part is missing; "" if none is."""
    plan, no_plan = run.progress.plan, run.progress.stop.no_plan
    if plan.failed:
        first = plan.failed[0]
        return f"step {first.part_id}/{first.step.id} was given up: {first.why}"
    if plan.parts_done < plan.total_parts:
        missing = f"{plan.total_parts - plan.parts_done} of {plan.total_parts} parts are not done"
        return f"{missing}: {no_plan}" if no_plan else missing
    return ""
