"""The pass after each step: revises what remains of the part in the light of what happened."""

from collections.abc import Sequence

from clean_room_agent.artifacts.context import ContextPackage, ContextRequest
from clean_room_agent.artifacts.names import adjustment_pass, counted
from clean_room_agent.artifacts.outcomes import PassType
from clean_room_agent.artifacts.plans import Part, PlanAdjustment, PlanStep
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.execute.plan import adjust
from clean_room_agent.execute.plan_drafts import AdjustmentAsked, StepOutcome
from clean_room_agent.orchestrator.events import PassProgress
from clean_room_agent.orchestrator.passes.planning import LOOKING, how_made, note_planned, plan_limits
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.run_recorder import PassEnd, PassHeader
from clean_room_agent.orchestrator.task_evidence import task_evidence


def adjust_part(
    run: Run, part: Part, newest: StepOutcome, earlier: Sequence[StepOutcome], remaining: Sequence[PlanStep]
) -> tuple[PlanStep, ...]:
    """The steps that remain after `newest`: revised, or unchanged if there was no valid revision.

    If nothing remains, the pass is recorded and no model is asked.
    """
    left = tuple(remaining)
    rounds = run.limits.orchestrator.max_adjustment_rounds
    if rounds == 0:
        return left
    pass_id = adjustment_pass(run.task.task_id, part.id, newest.step.id)
    header = PassHeader(
        kind=PassType.ADJUST,
        pass_id=pass_id,
        title=f"what remains of {part.id}",
        part_id=part.id,
        step_id=newest.step.id,
    )
    inputs = (run.commits.head, newest.detail, *(step.model_dump_json() for step in left))
    outcomes = (*earlier, newest)
    end = run.journal.carry_out(header, inputs, lambda: _revise_steps(run, part, outcomes, left, pass_id))
    if end.plan is None:
        return left
    return PlanAdjustment.model_validate_json(end.plan).revised_steps


def _revise_steps(
    run: Run, part: Part, outcomes: tuple[StepOutcome, ...], left: tuple[PlanStep, ...], pass_id: str
) -> PassEnd:
    route = run.limits.orchestrator.adjusting
    asked = AdjustmentAsked(
        part=part,
        remaining=left,
        outcomes=outcomes,
        task=run.task.words,
        diff=run.commits.readable_diff(),
        paths=run.commits.tree().places,
        limits=plan_limits(run.models, run.limits.orchestrator),
    )
    asks = bool(left) and (route == "one-call" or bool(asked.failures))
    try:
        package = _context_of_steps(run, part, left, pass_id) if asks else None
        if asks:
            run.recorder.observer.notice(PassProgress(doing="revising the remaining steps"))
        planned = adjust(run.models, package, asked, pass_id=pass_id, route=route)
    except WindowExceeded as error:
        # The plan is kept unchanged; a resumed run does not decide that again.
        run.recorder.note(f"{error.message}; the remaining steps stay as they were")
        return PassEnd(success=False, detail=f"kept as it was: {error.message}")
    note_planned(run, pass_id, planned)
    plan = planned.value
    if plan is None:
        return PassEnd(success=False, detail=f"kept as it was: {'; '.join(planned.faults)}")
    how = how_made(route, planned) if planned.verdicts else ""
    return PassEnd(success=True, detail=_describe_changes(plan, left) + how, plan=plan.model_dump_json())


def _context_of_steps(run: Run, part: Part, left: tuple[PlanStep, ...], pass_id: str) -> ContextPackage:
    """The context of the remaining steps, from the tree as it is now."""
    known = run.commits.tree().paths
    files = {target.path for step in left for target in step.target_files if target.path in known}
    run.recorder.observer.notice(PassProgress(doing=LOOKING))
    return run.context.retrieve(
        ContextRequest(
            pass_id=pass_id,
            mode="plan",
            role="reasoning",
            task=run.task.words,
            focus=part.description,
            files=tuple(sorted(files)),
            symbols=tuple(dict.fromkeys(name for step in left for name in step.target_symbols)),
            evidence=task_evidence(run, run.progress.accepted),
        )
    )


def _describe_changes(plan: PlanAdjustment, before: Sequence[PlanStep]) -> str:
    if not before and not plan.revised_steps:
        return "nothing remains"
    if plan.changes_made:
        return "; ".join(plan.changes_made)
    same = [step.id for step in before] == [step.id for step in plan.revised_steps]
    steps = counted(len(plan.revised_steps), "step remains", "steps remain")
    return f"{steps}, unchanged" if same else steps
