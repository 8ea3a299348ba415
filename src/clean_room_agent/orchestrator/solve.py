"""The run's passes in order: plan of parts, then for each part its plan, steps and adjustments; final tests.
A step is tried until an attempt passes, or until the recovery rules say to stop. `cra plan` stops at the plan.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from clean_room_agent.artifacts.evidence import Evidence
from clean_room_agent.artifacts.names import meta_plan_pass, part_plan_pass, relative_pass
from clean_room_agent.artifacts.outcomes import (
    ENDS_RUN,
    Action,
    AttemptOutcome,
    EventKind,
    PassResult,
    PassType,
    RunStatus,
)
from clean_room_agent.artifacts.plans import (
    MAX_MESSAGE,
    FailureSignal,
    MetaPlan,
    Part,
    PartPlan,
    PlanArtifact,
    PlanEvidence,
    PlanStep,
)
from clean_room_agent.errors import ModelError, WindowExceeded
from clean_room_agent.execute.plan_drafts import StepOutcome
from clean_room_agent.execute.plan_validation import in_order
from clean_room_agent.orchestrator.finishing import Solved, finish
from clean_room_agent.orchestrator.goal_verdict import told_at_first
from clean_room_agent.orchestrator.goals import collect_goals
from clean_room_agent.orchestrator.journal import PASS
from clean_room_agent.orchestrator.passes.adjust import adjust_part
from clean_room_agent.orchestrator.passes.meta_plan import plan_parts
from clean_room_agent.orchestrator.passes.part_plan import FailedPlan, plan_part
from clean_room_agent.orchestrator.run import Run, StepDone, StepFailed
from clean_room_agent.orchestrator.steps.attempt import Attempt, StepJob
from clean_room_agent.orchestrator.steps.checked_attempt import candidate
from clean_room_agent.orchestrator.steps.missing_context import is_new
from clean_room_agent.orchestrator.steps.rounds import Round, StepHistory, draw_round, has_attempt
from clean_room_agent.orchestrator.task import PlanGiven
from clean_room_agent.orchestrator.task_evidence import task_evidence
from clean_room_agent.orchestrator.test_runs.results import TestRun

if TYPE_CHECKING:
    from clean_room_agent.orchestrator.direct.candidates import GoalsAtBase

FIRST = Action(kind="retry", rule="first attempt")
ENDS_STEP = ENDS_RUN | {"replan", "reduce_scope"}
LATER_BETTER = "a later attempt did better"
PlannedT = TypeVar("PlannedT", Part, PlanStep)


def solve(run: Run, given: PlanGiven, baseline: TestRun) -> Solved:
    """Carry out the task, whose tests at the base are `baseline`, as far as possible; everything is recorded, and the result is
    a branch.

    A model server that fails ends the run; the steps accepted before are tested and kept as a partial result.

    Raises:
        ModelError: the server failed before a step was accepted.
        ConfigError: a test command cannot be started.
    """
    run.progress.asked = given.paths
    run.progress.goals = collect_goals(run, baseline, given.evidence)
    standard = run.progress.accepted
    follows_plan = given.single is not None or given.meta_plan is not None
    if follows_plan and not run.progress.goals.deciding:
        _drop_guesses(run, standard)
    for text in told_at_first(run.progress.goals):
        run.recorder.note(text)
    at_base = _at_base(run)
    try:
        if given.single is not None:
            _follow_plan(run, given.single)
        elif given.meta_plan is not None or not _done_directly(run, given, at_base):
            if not run.progress.goals.deciding:
                _drop_guesses(run, standard)
            _do_parts(run, given.meta_plan or _plan_within_budget(run, baseline))
    except ModelError as error:
        if not run.progress.plan.done:
            raise
        run.progress.stop.reason = error.message
        run.recorder.note(f"{error.message} ({error.hint})")
    for text in () if run.progress.stopped() else run.task.hints.unshown:
        run.recorder.note(f"nothing was left to ask, so no model was shown the hint: {text}")
    return finish(run, baseline)


def make_plan(run: Run, model: str) -> tuple[PlanArtifact | None, str]:
    """Plan the task down to its steps with `model`, and record it; the plan, or why there is none. No test is run, and
    nothing is edited.
    """
    from clean_room_agent.execute.plan_file import build_artifact

    meta = plan_parts(run, Evidence())
    parts = meta.parts if meta is not None else ()
    plans: list[PartPlan] = []
    for part in parts:
        plan = plan_part(run, meta, part, Evidence()) if meta is not None else None
        if plan is None:
            break
        plans.append(plan)
    run.progress.plan.total_parts = len(parts)
    run.progress.plan.total_steps = sum(len(plan.steps) for plan in plans)
    run.report_progress()
    if meta is None or len(plans) < len(parts):
        reason = run.progress.stop.no_plan
        run.recorder.ended(RunStatus.FAILED, reason=reason)
        return None, reason
    artifact = build_artifact(
        task_id=run.task.task_id,
        task=run.task.description,
        model=model,
        created_at=run.recorder.now(),
        meta_plan=meta,
        part_plans=tuple(plans),
    )
    given = run.task.given
    evidence = PlanEvidence(tests=given.tests, checks=given.checks, files=given.files)
    rationale = _rationale(meta, run.recorder.passes)
    run.recorder.ended(RunStatus.COMPLETE)
    return artifact.model_copy(update={"rationale": rationale, "evidence": evidence}), ""


def _rationale(meta: MetaPlan, passes: Sequence[PassResult]) -> str:
    """The model's reasons for the plan, and which parts of it the model did not make."""
    own = [entry for entry in passes if entry.fallback]
    rationale = "" if any(entry.pass_type is PassType.META_PLAN for entry in own) else meta.rationale
    own_words = [
        f"Not planned by the model: {relative_pass(entry.pass_id)}: {entry.detail}." for entry in own
    ]
    return "\n".join(line for line in (rationale, *own_words) if line)


def _at_base(run: Run) -> "GoalsAtBase | None":
    """The goal tests before any change, where they are needed: for the direct route, which needs none where nothing is planned, or
    as some were added. None where they are not.
    """
    goals = run.progress.goals
    if run.limits.solve.route == "planned" and not goals.commit:
        return None
    if not goals.guiding and run.limits.orchestrator.planning != "none":
        return None
    from clean_room_agent.orchestrator.direct.candidates import stand_on_goals

    return stand_on_goals(run, goals)


def _done_directly(run: Run, given: PlanGiven, at_base: "GoalsAtBase | None") -> bool:
    if run.limits.solve.route == "planned" or at_base is None:
        return False
    from clean_room_agent.orchestrator.direct.route import go_direct

    return go_direct(run, at_base, given.evidence.files)


def _drop_guesses(run: Run, standard: TestRun | None) -> None:
    """Go on from the base, whose tests are `standard`: what a model only guessed is in no tree that is planned for."""
    run.commits.head = run.commits.base
    run.progress.accepted = run.progress.at_base = standard and run.tests.names.of(standard)
    run.progress.goals = replace(run.progress.goals, commit="")


def _follow_plan(run: Run, plan: PartPlan) -> None:
    part = Part(id=plan.part_id, description=plan.task_summary)
    run.progress.plan.total_parts = 1
    _note_planned(run, plan)
    run.progress.plan.parts_done = int(_do_steps(run, part, plan, last=True, revise=False))
    run.report_progress()


def _plan_within_budget(run: Run, baseline: TestRun) -> MetaPlan | None:
    """The task in parts; None if there is no plan, or the budget is spent."""
    if not _has_budget(run, meta_plan_pass(run.task.task_id)):
        return None
    return plan_parts(run, task_evidence(run, run.progress.accepted or baseline))


def _has_budget(run: Run, pass_id: str) -> bool:
    """Whether the planning pass was carried out before the run was resumed, or may be now; if not, the run stops."""
    spent = "" if run.journal.has(pass_id, PASS) else run.journal.budget.spent()
    if spent:
        run.progress.stop.reason = f"budget spent: {spent}"
    return not spent


def _do_parts(run: Run, meta: MetaPlan | None) -> None:
    if meta is None:
        return
    run.progress.plan.total_parts = len(meta.parts)
    run.progress.plan.files.update(path for part in meta.parts for path in part.affected_files)
    run.report_progress()
    unfinished: set[str] = set()
    parts = _dependencies_first(meta.parts)
    for part in parts:
        if run.progress.stopped():
            return
        blocked = sorted(unfinished & set(part.depends_on))
        if blocked:
            unfinished.add(part.id)
            run.recorder.event(
                run.task.task_id, EventKind.PART_BLOCKED, f"{part.id} needs {', '.join(blocked)}"
            )
            continue
        if not _do_part(run, meta, part, last=part is parts[-1]):
            unfinished.add(part.id)
        run.report_progress()


def _do_part(run: Run, meta: MetaPlan, part: Part, *, last: bool) -> bool:
    """Carry out a part; whether every step of its plan was accepted. It is replanned if the recovery table says so."""
    failed: FailedPlan | None = None
    while True:
        if not _has_budget(run, part_plan_pass(run.task.task_id, part.id, failed.number if failed else 0)):
            return False
        evidence = task_evidence(run, run.progress.accepted)
        plan = plan_part(run, meta, part, evidence, failed)
        if plan is None:
            return False
        if failed is not None:  # what the new plan is to make good no longer counts against the run
            run.progress.plan.failed = [lost for lost in run.progress.plan.failed if lost.part_id != part.id]
        _note_planned(run, plan)
        number = failed.number + 1 if failed else 1
        needed = any(part.id in other.depends_on for other in meta.parts)
        if _do_steps(run, part, plan, last=last, number=number, needed=needed):
            run.progress.plan.parts_done += 1
            return True
        lost = [one for one in run.progress.plan.failed if one.part_id == part.id]
        if run.progress.stopped() or not any(one.replan for one in lost):
            return False
        if run.replans_left(part.id, number) == 0:
            return False
        run.progress.plan.replans += 1
        failed = FailedPlan(
            plan=plan,
            faults=tuple(one.fault for one in lost),
            number=number,
            cut_off=any(one.cut_off for one in lost),
        )
        run.recorder.event(run.task.task_id, EventKind.REPLAN, f"{part.id}: {'; '.join(failed.faults)}")


def _do_steps(
    run: Run,
    part: Part,
    plan: PartPlan,
    *,
    last: bool,
    revise: bool = True,
    number: int = 0,
    needed: bool = False,
) -> bool:
    """Carry out the steps; whether every one was accepted. `last`: they belong to the run's last part. `revise`: a
    model made the plan and revises what remains; else a user did, and the reasons in the plan are to be kept in mind. `number` is the plan's, from 1 (0: it cannot be replanned). `needed`: another part needs
    this one.
    """
    remaining = _dependencies_first(plan.steps)
    run.progress.plan.total_steps += len(remaining)
    run.report_progress()
    outcomes: list[StepOutcome] = []
    given_up: set[str] = set()
    while remaining and not run.progress.stopped():
        step = remaining.pop(0)
        blocked = sorted(given_up & set(step.depends_on))
        if blocked:
            why = f"blocked: needs {', '.join(blocked)}"
            run.progress.plan.failed.append(StepFailed(part_id=part.id, step=step, why=why))
            given_up.add(step.id)
            continue
        job = StepJob(
            part=part,
            step=step,
            constraints="" if revise else plan.rationale,
            last=last and not remaining,
            depended_on=needed or any(step.id in other.depends_on for other in remaining),
            plan_number=number,
        )
        end = _try_step(run, job)
        newest = StepOutcome(step=step, succeeded=True)
        if isinstance(end, StepFailed):
            given_up.add(step.id)
            if end.action.kind == "reduce_scope":
                remaining.insert(0, _reduce_step(run, job, end))
                continue
            newest = StepOutcome(step=step, succeeded=False, detail=end.why, failures=end.failures)
        if run.progress.stopped():
            break
        revised = adjust_part(run, part, newest, outcomes, remaining) if revise else tuple(remaining)
        outcomes.append(newest)
        run.progress.plan.total_steps += len(revised) - len(remaining)
        remaining = list(revised)
        run.progress.plan.files.update(target.path for left in remaining for target in left.target_files)
        run.report_progress()
    return not given_up and not remaining


def _try_step(run: Run, job: StepJob) -> Attempt | StepFailed:
    """Try the step, and return the accepted attempt, or why there is none; a run whose budget is spent, or which waits for a
    person, stops here.
    """
    plan = run.progress.plan
    spent = "" if has_attempt(run, job) else run.journal.budget.spent()
    if spent:
        run.progress.stop.reason = f"budget spent: {spent}"
        plan.failed.append(StepFailed(part_id=job.part.id, step=job.step, why=run.progress.stop.reason))
        return plan.failed[-1]
    end = run_step(run, job)
    if isinstance(end, StepFailed):
        if end.action.kind != "reduce_scope":  # of which a part can still be done
            plan.failed.append(end)
        if end.action.kind == "stop":
            run.progress.stop.reason = f"budget spent: {run.journal.budget.spent()}"
        if end.action.kind == "needs_human":
            run.progress.stop.reason = f"step {job.part.id}/{job.step.id} cannot be done: {end.why}"
            run.progress.stop.question = end.action.question
        return end
    plan.done.append(StepDone(part_id=job.part.id, step=job.step, commit=end.change.commit))
    if not run.journal.behind:
        run.commits.keep_head()
    run.report_progress()
    return end


def run_step(run: Run, job: StepJob) -> Attempt | StepFailed:
    """Carry out the step. The commit of an accepted attempt is the run's head; of a failed step, head and worktree are as
    before.
    """
    history = StepHistory()
    action = FIRST
    while True:
        try:
            drawn = draw_round(run, job, history, action)
        except WindowExceeded as error:
            return (
                _too_large(job, error) if history.kept is None else _accept_best(run, history, history.kept)
            )
        attempt = drawn.best
        if attempt.passed and not attempt.unfinished:
            return _accept_best(run, history, drawn)
        if not drawn.known:
            with run.journal.interrupts.shield():
                run.tests.checkout(run.commits.head)
        if attempt.passed:
            _keep_better(run, history, drawn)
        from clean_room_agent.orchestrator.steps.after_failure import attempt_seen, decide_next, signals_of

        missing = (
            attempt.missing if attempt.missing and is_new(attempt.missing, history.refinements) else None
        )
        history.failed.append(attempt)
        history.seen.append(attempt_seen(attempt, action, missing, candidates=drawn.size))
        action = decide_next(run, job, history, drawn.pass_id)
        wanted = action.missing or missing
        if action.kind == "refine" and wanted is not None:
            history.refinements.append(wanted)
        if action.kind not in ENDS_STEP:
            continue
        if history.kept is not None:
            return _accept_best(run, history, history.kept)
        return StepFailed(
            part_id=job.part.id,
            step=job.step,
            why=f"{attempt.outcome.value}: {attempt.detail}",
            cut_off=any(one.outcome is AttemptOutcome.TRUNCATED for one in history.seen),
            failures=signals_of(attempt),
            action=action,
        )


def _too_large(job: StepJob, error: WindowExceeded) -> StepFailed:
    """The end of a step whose prompt cannot fit; other steps may be smaller."""
    signal = FailureSignal(category="unknown", message=error.message[:MAX_MESSAGE], source="window")
    action = Action(kind="replan", rule="its prompt does not fit")
    return StepFailed(
        part_id=job.part.id, step=job.step, why=error.message, failures=(signal,), action=action
    )


def _keep_better(run: Run, history: StepHistory, drawn: Round) -> None:
    """Of the round's best, which may stay, and the one kept so far, keep the one that turned more goal tests green."""
    if history.kept is None:
        history.kept = drawn
        return
    ours, theirs = (candidate(one.best, 0, run.progress.accepted).green for one in (drawn, history.kept))
    loser, why = (history.kept, LATER_BETTER) if ours > theirs else (drawn, "an earlier attempt did as well")
    run.recorder.event(loser.pass_id, EventKind.NOT_CHOSEN, why)
    if loser is history.kept:
        history.kept = drawn


def _accept_best(run: Run, history: StepHistory, drawn: Round) -> Attempt:
    """Make the commit of the round's best the run's head. Worktree and index follow when the next context is made."""
    chosen = drawn.best
    assert chosen.judgment is not None, "only what passed its tests is accepted"
    with run.journal.interrupts.shield():
        if history.kept is not None and history.kept is not drawn:
            run.recorder.event(history.kept.pass_id, EventKind.NOT_CHOSEN, LATER_BETTER)
        run.commits.head = chosen.change.commit
        run.progress.accepted = chosen.judgment.tests
    return chosen


def _reduce_step(run: Run, job: StepJob, end: StepFailed) -> PlanStep:
    """The smallest deliverable of the step; the rest is given up for now, and its part replanned if possible."""
    from clean_room_agent.orchestrator.steps.after_failure import divided

    small, rest = divided(job.step)
    why = f"left for later, after {small.id}: {end.action.rule}"
    run.progress.plan.failed.append(replace(end, step=rest, why=why))
    run.recorder.event(
        run.task.task_id, EventKind.SCOPE_REDUCED, f"{job.part.id}/{job.step.id}: {rest.description}"
    )
    run.progress.plan.total_steps += 1
    return small


def _note_planned(run: Run, plan: PartPlan) -> None:
    run.progress.plan.files.update(target.path for step in plan.steps for target in step.target_files)


def _dependencies_first(items: Sequence[PlannedT]) -> list[PlannedT]:
    """The parts or steps, each after those that it needs; independent ones stay in the plan's order."""
    by_id = {item.id: item for item in items}
    return [by_id[name] for name in in_order({item.id: item.depends_on for item in items})]
