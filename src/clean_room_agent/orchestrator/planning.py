"""The planning passes: the task into parts, and a part into steps. A plan that cannot be made ends its own level only."""

from dataclasses import dataclass, replace

from clean_room_agent.artifacts.evidence import Evidence
from clean_room_agent.artifacts.ids import ID_LENGTH, meta_plan_pass, part_plan_pass, relative_pass
from clean_room_agent.artifacts.outcomes import PassType
from clean_room_agent.artifacts.package import ContextPackage
from clean_room_agent.artifacts.plans import MetaPlan, Part, PartPlan
from clean_room_agent.artifacts.tasks import RoomRequest
from clean_room_agent.execute.implement import lines_of_an_answer
from clean_room_agent.execute.one_call import meta_plan_tokens, part_plan_tokens
from clean_room_agent.execute.plan import PlanLimits, Planned, make_meta_plan, make_part_plan, refused
from clean_room_agent.execute.prompts.implement import IMPLEMENT
from clean_room_agent.git.history import diff
from clean_room_agent.orchestrator.chronicle import PassEnd
from clean_room_agent.orchestrator.events import PassProgress
from clean_room_agent.orchestrator.kept_context import ROOM, fits
from clean_room_agent.orchestrator.passes import PlanPass, plan_pass
from clean_room_agent.orchestrator.run import CONTEXT_OF, Run


def plan_parts(run: Run, evidence: Evidence) -> MetaPlan | None:
    """The task in parts; None where no valid plan came, and the run's reason then says why."""
    which = PlanPass(kind=PassType.META_PLAN, pass_id=meta_plan_pass(run.task_id), title="plan")
    end = plan_pass(run, which, (run.base,), lambda: _plan_parts(run, which.pass_id, evidence))
    if end.plan is None:
        run.progress.no_plan_reason = end.detail
        return None
    return MetaPlan.model_validate_json(end.plan)


def _plan_parts(run: Run, pass_id: str, evidence: Evidence) -> PassEnd:
    room = _room(
        run,
        RoomRequest(
            pass_id=pass_id,
            mode="plan",
            role="reasoning",
            task=run.words,
            evidence=evidence,
            extra_reserved=_beyond_reserve(run, meta_plan_tokens(run.models, run.words, evidence)),
        ),
    )
    run.observer.notice(PassProgress(doing="dividing the task into parts"))
    planned = make_meta_plan(
        run.models,
        room,
        pass_id=pass_id,
        evidence=evidence,
        exists=run.tree().paths.__contains__,
        limits=plan_limits(run),
    )
    _note(run, pass_id, planned)
    plan = planned.value
    if plan is None:
        return PassEnd(success=False, detail=f"no valid plan: {'; '.join(planned.faults)}")
    names = ", ".join(part.id for part in plan.parts)
    detail = f"{len(plan.parts)} part{'s' if len(plan.parts) != 1 else ''}: {names}"
    return PassEnd(success=True, detail=detail, plan=plan.model_dump_json())


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedPlan:
    """A plan of a part that did not work out. `number` is 1 for the part's first."""

    plan: PartPlan
    faults: tuple[str, ...]
    """What became of the steps that were given up."""
    number: int
    cut_off: bool
    """Whether an answer for one of them was: the next plan's steps are to be short enough for a usual answer."""


def plan_part(
    run: Run, meta: MetaPlan, part: Part, evidence: Evidence, failed: FailedPlan | None = None
) -> PartPlan | None:
    """The part in steps; None where no valid plan came. After a `failed` plan, its steps have names of their own."""
    which = PlanPass(
        kind=PassType.PART_PLAN,
        pass_id=part_plan_pass(run.task_id, part.id, failed.number if failed else 0),
        title=f"plan of part {part.id}",
        part_id=part.id,
    )
    inputs = (run.progress.head, part.model_dump_json(), *(failed.faults if failed else ()))
    end = plan_pass(
        run,
        which,
        inputs,
        lambda: _plan_part(run, meta, part, evidence, failed, which.pass_id),
        must_fit=False,  # other parts may be smaller
    )
    if end.plan is None:
        run.progress.no_plan_reason = run.progress.no_plan_reason or f"part {part.id}: {end.detail}"
        return None
    return PartPlan.model_validate_json(end.plan)


def _plan_part(
    run: Run, meta: MetaPlan, part: Part, evidence: Evidence, failed: FailedPlan | None, pass_id: str
) -> PassEnd:
    known = run.tree().paths
    earlier = (failed.plan, failed.faults) if failed else None
    need = part_plan_tokens(
        run.models, run.words, part, goal=meta.task_summary, evidence=evidence, rejected=refused(earlier)
    )
    request = RoomRequest(
        pass_id=pass_id,
        mode="plan",
        role="reasoning",
        task=run.words,
        focus=part.description,
        files=tuple(path for path in part.affected_files if path in known),
        evidence=evidence,
        extra_reserved=_beyond_reserve(run, need),
    )
    shared = _shared_room(run, meta, request) if failed is None else None
    room = shared or _room(run, request)
    run.observer.notice(PassProgress(doing="dividing it into steps"))
    planned = make_part_plan(
        run.models,
        room,
        part,
        meta,
        pass_id=pass_id,
        exists=known.__contains__,
        diff=diff(run.repo, run.base, run.progress.head),
        limits=plan_limits(run, short=failed is not None and failed.cut_off),
        evidence=evidence,
        failed=earlier,
    )
    _note(run, pass_id, planned)
    plan = planned.value
    if plan is not None and failed is not None:
        plan = _with_own_names(plan, f"-{failed.number + 1}")
    if plan is None:
        return PassEnd(success=False, detail=f"no valid plan: {'; '.join(planned.faults)}")
    detail = f"{len(plan.steps)} step{'s' if len(plan.steps) != 1 else ''}"
    return PassEnd(success=True, detail=detail, plan=plan.model_dump_json())


def _shared_room(run: Run, meta: MetaPlan, request: RoomRequest) -> ContextPackage | None:
    """The context of the meta-plan, where it serves the only part of a task as well; None where it has to be made anew.

    Nothing was changed or said since, it shows all files that the part names, and the part's prompt leaves it enough.
    """
    first = meta_plan_pass(run.task_id)
    room = run.journal.newest(first, ROOM, ContextPackage)
    if room is None or len(meta.parts) != 1 or run.progress.head != run.base or room.task != request.task:
        return None
    shown = {item.path for item in room.items}
    if not shown.issuperset(request.files) or not fits(
        room, run.models.window(request.role), request.extra_reserved
    ):
        return None
    run.chronicle.event(request.pass_id, CONTEXT_OF, relative_pass(first))
    return replace(room, pass_id=request.pass_id)


def _with_own_names(plan: PartPlan, suffix: str) -> PartPlan:
    """The plan with `suffix` behind each step's id, so that no pass of it bears an earlier one's name."""
    names = {step.id: step.id[: ID_LENGTH - len(suffix)] + suffix for step in plan.steps}
    steps = tuple(
        step.model_copy(
            update={"id": names[step.id], "depends_on": tuple(names[need] for need in step.depends_on)}
        )
        for step in plan.steps
    )
    return plan.model_copy(update={"steps": steps})


def _beyond_reserve(run: Run, need: int) -> int:
    """What of a prompt's `need` the configured reserve does not hold, so that its code never has to go for it."""
    return max(0, need - run.models.window("reasoning").reserved)


def _room(run: Run, request: RoomRequest) -> ContextPackage:
    run.observer.notice(PassProgress(doing="looking for what it needs"))
    return run.context.retrieve(request)


def plan_limits(run: Run, *, short: bool = False) -> PlanLimits:
    """The bounds of a plan: the configured ones, and what an answer can hold, for which code goes unless it is `short`."""
    bounds = run.limits.orchestrator
    lines = lines_of_an_answer(run.models.window(IMPLEMENT), raised=not short)
    return PlanLimits(max_parts=bounds.max_parts, max_steps=bounds.max_steps_per_part, max_lines=lines)


def _note(run: Run, pass_id: str, planned: Planned[MetaPlan] | Planned[PartPlan]) -> None:
    for note in planned.notes:
        run.chronicle.event(pass_id, "plan_note", note)
    for fault in planned.faults:
        run.chronicle.event(pass_id, "plan_fault", fault)
