"""The pass that divides a part into steps, for the first time or after a plan that did not work out. If there is no valid plan,
the part becomes one step; if there are no files for that, the pass ends without a plan.
"""

from collections.abc import Container

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.context import ContextItem, ContextPackage, ContextRequest
from clean_room_agent.artifacts.evidence import Evidence
from clean_room_agent.artifacts.names import ID_LENGTH, counted, meta_plan_pass, part_plan_pass, relative_pass
from clean_room_agent.artifacts.outcomes import EventKind, PassType
from clean_room_agent.artifacts.plans import MetaPlan, Part, PartPlan
from clean_room_agent.execute.plan import Route, make_part_plan, part_plan_tokens, refused, whole_part
from clean_room_agent.execute.plan_drafts import PartAsked, PlanDraft, Rejected
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.orchestrator.events import PassProgress
from clean_room_agent.orchestrator.passes.planning import (
    LOOKING,
    NOTHING_IN_SCOPE,
    beyond_reserve,
    editable_scope,
    fallen_back,
    how_made,
    may_fall_back,
    note_planned,
    plan_limits,
    without_plan,
)
from clean_room_agent.orchestrator.run import CONTEXT, Run, fits
from clean_room_agent.orchestrator.run_recorder import PassEnd, PassHeader


class FailedPlan(Struct, frozen=True, kw_only=True):
    """A plan of a part that did not work out. `number` is 1 for the part's first."""

    plan: PartPlan
    faults: tuple[str, ...]
    """How the steps that were given up ended."""
    number: int
    cut_off: bool
    """Whether an answer for one of them was cut off; the next plan's steps then have to be short enough for a usual
    answer.
    """


def plan_part(
    run: Run, meta: MetaPlan, part: Part, evidence: Evidence, failed: FailedPlan | None = None
) -> PartPlan | None:
    """The part in steps; None if there is no valid plan. After a `failed` plan, its steps have new names."""
    pass_id = part_plan_pass(run.task.task_id, part.id, failed.number if failed else 0)
    header = PassHeader(
        kind=PassType.PART_PLAN, pass_id=pass_id, title=f"plan of part {part.id}", part_id=part.id
    )
    inputs = (run.commits.head, part.model_dump_json(), *(failed.faults if failed else ()))
    end = run.journal.carry_out(
        header,
        inputs,
        lambda: _plan_part(run, meta, part, evidence, failed, pass_id),
        must_fit=False,  # unlike the whole task: other parts may be smaller
    )
    if end.plan is None:
        stop = run.progress.stop
        stop.no_plan = stop.no_plan or f"part {part.id}: {end.detail}"
        return None
    return PartPlan.model_validate_json(end.plan)


def _plan_part(
    run: Run, meta: MetaPlan, part: Part, evidence: Evidence, failed: FailedPlan | None, pass_id: str
) -> PassEnd:
    limits, notice = run.limits.orchestrator, run.recorder.observer.notice
    known = run.commits.tree().paths
    earlier = (failed.plan, failed.faults) if failed else None
    request = part_plan_request(
        run.models,
        pass_id,
        run.task.words,
        part,
        goal=meta.task_summary,
        evidence=evidence,
        known=known,
        rejected=refused(earlier),
        route=limits.planning,
    )
    shared = _shared_package(run, meta, request) if failed is None else None
    if shared is None:
        notice(PassProgress(doing=LOOKING))
    package = shared or run.context.retrieve(request)
    if failed is not None:
        package = _with_first_finds(run, package)
    notice(PassProgress(doing="dividing it into steps"))
    asked = PartAsked(
        part=part,
        meta=meta,
        evidence=evidence,
        diff=run.commits.readable_diff(),
        paths=run.commits.tree().places,
        limits=plan_limits(run.models, limits, short=failed is not None and failed.cut_off),
        same_context=shared is not None,
    )
    done = tuple(entry.step for entry in run.progress.plan.done if entry.part_id == part.id)
    planned = make_part_plan(
        run.models, package, asked, pass_id=pass_id, failed=earlier, done=done, route=limits.planning
    )
    note_planned(run, pass_id, planned)
    return _end_of_steps(run, package, part, planned, failed)


def _end_of_steps(
    run: Run, package: ContextPackage, part: Part, planned: PlanDraft[PartPlan], failed: FailedPlan | None
) -> PassEnd:
    """How the pass ended; without a plan, with the part as one step, if that is configured, was not tried before, and
    there are files.
    """
    plan = planned.value
    if plan is not None:
        own = _with_own_names(plan, failed)
        how = how_made(run.limits.orchestrator.planning, planned)
        detail = f"{counted(len(plan.steps), 'step')}{how}"
        return PassEnd(success=True, detail=detail, plan=own.model_dump_json())
    why = without_plan(run, planned)
    if not may_fall_back(run):
        return PassEnd(success=False, detail=why)
    scope = editable_scope(run, package)
    whole = whole_part(part, run.task.description, scope, run.commits.tree().places)
    if whole is None:
        return PassEnd(success=False, detail=f"{why}; {NOTHING_IN_SCOPE}")
    targets = whole.steps[0].target_files
    tried = failed.plan.steps if failed is not None else ()
    if any(step.any_of_files and step.target_files == targets for step in tried):
        return PassEnd(success=False, detail=f"{why}; the part as one step was tried before")
    files = ", ".join(target.path for target in targets)
    detail = f"{why}; one step in its place: {files}"
    return fallen_back(run, package.pass_id, planned.faults, _with_own_names(whole, failed), detail)


def _with_own_names(plan: PartPlan, failed: FailedPlan | None) -> PartPlan:
    """The plan; after a failed one, with a number after each step's id, so that its passes have new names."""
    if failed is None:
        return plan
    suffix = f"-{failed.number + 1}"
    names = {step.id: step.id[: ID_LENGTH - len(suffix)] + suffix for step in plan.steps}
    steps = tuple(
        step.model_copy(
            update={"id": names[step.id], "depends_on": tuple(names[need] for need in step.depends_on)}
        )
        for step in plan.steps
    )
    return plan.model_copy(update={"steps": steps})


def part_plan_request(
    models: ModelClient,
    pass_id: str,
    words: str,
    part: Part,
    *,
    goal: str,
    evidence: Evidence,
    known: Container[str],
    rejected: Rejected,
    route: Route = "one-call",
) -> ContextRequest:
    """What the plan of a part asks of retrieval; `known` are the existing files."""
    need = part_plan_tokens(models, words, part, goal=goal, evidence=evidence, rejected=rejected, route=route)
    return ContextRequest(
        pass_id=pass_id,
        mode="plan",
        role="reasoning",
        task=words,
        focus=part.description,
        files=tuple(path for path in part.affected_files if path in known),
        evidence=evidence,
        extra_reserved=beyond_reserve(models, need),
    )


def _shared_package(run: Run, meta: MetaPlan, request: ContextRequest) -> ContextPackage | None:
    """The context of the meta-plan, if nothing was changed since and it serves the part as well; else None."""
    first = meta_plan_pass(run.task.task_id)
    package = run.journal.newest(first, CONTEXT, ContextPackage)
    unchanged = run.commits.head == run.commits.base
    if package is None or not unchanged or not serves_part(run.models, package, meta, request):
        return None
    run.recorder.event(request.pass_id, EventKind.CONTEXT_OF, relative_pass(first))
    return replace(package, pass_id=request.pass_id)


def serves_part(
    models: ModelClient, package: ContextPackage, meta: MetaPlan, request: ContextRequest
) -> bool:
    """Whether the context of the meta-plan serves the only part of a task as well: the task's words are the same, it
    shows all files that the part names, and the part's prompt leaves enough space for it.
    """
    return (
        len(meta.parts) == 1
        and package.task == request.task
        and {item.path for item in package.items}.issuperset(request.files)
        and fits(package, models.window(request.role), request.extra_reserved)
    )


def _with_first_finds(run: Run, package: ContextPackage) -> ContextPackage:
    """The package with what was found to be changed for the whole task, since the part may name the wrong files: the primary
    items of the meta-plan's context that it lacks and that are unchanged, to be left out first.
    """
    first = run.journal.newest(meta_plan_pass(run.task.task_id), CONTEXT, ContextPackage)
    finds = first.primary() if first is not None else ()
    paths = tuple({item.path: None for item in finds})
    (then, _), (now, _) = (
        run.commits.tree(commit).texts(paths) for commit in (run.commits.base, run.commits.head)
    )
    more = tuple(
        replace(item, detail="supporting", adjoins=False)
        for item in finds
        if now.get(item.path) == then.get(item.path) and not any(_covers(one, item) for one in package.items)
    )
    return replace(package, items=(*package.items, *more))


def _covers(one: ContextItem, other: ContextItem) -> bool:
    inside = one.start_line <= other.start_line and other.end_line <= one.end_line
    return one.path == other.path and inside and one.detail in {"primary", "supporting"}
