"""The first planning pass: divides the task into parts. If there is no valid plan, the whole task becomes one part; if there are
no files for that, the pass ends without a plan.
"""

from msgspec.structs import replace

from clean_room_agent.artifacts.context import ContextPackage, ContextRequest
from clean_room_agent.artifacts.evidence import Evidence
from clean_room_agent.artifacts.names import counted, meta_plan_pass
from clean_room_agent.artifacts.outcomes import PassType
from clean_room_agent.artifacts.plans import MetaPlan, Part
from clean_room_agent.execute.plan import Route, make_meta_plan, meta_plan_tokens, whole_task
from clean_room_agent.execute.plan_drafts import PlanDraft
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
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.run_recorder import PassEnd, PassHeader


def plan_parts(run: Run, evidence: Evidence) -> MetaPlan | None:
    """The task in parts; None if there is no valid plan, and the run's reason then says why."""
    pass_id = meta_plan_pass(run.task.task_id)
    header = PassHeader(kind=PassType.META_PLAN, pass_id=pass_id, title="plan")
    end = run.journal.carry_out(header, (run.commits.base,), lambda: _plan_parts(run, evidence, pass_id))
    if end.plan is None:
        run.progress.stop.no_plan = end.detail
        return None
    return MetaPlan.model_validate_json(end.plan)


def _plan_parts(run: Run, evidence: Evidence, pass_id: str) -> PassEnd:
    notice, route = run.recorder.observer.notice, run.limits.orchestrator.planning
    notice(PassProgress(doing=LOOKING))
    request = meta_plan_request(run.models, pass_id, run.task.words, evidence, route)
    package = run.context.retrieve(replace(request, files=(*request.files, *run.task.given.files)))
    notice(PassProgress(doing="dividing the task into parts"))
    planned = make_meta_plan(
        run.models,
        package,
        pass_id=pass_id,
        evidence=evidence,
        limits=plan_limits(run.models, run.limits.orchestrator),
        route=route,
    )
    note_planned(run, pass_id, planned)
    return _end_of_parts(run, package, planned)


def _end_of_parts(run: Run, package: ContextPackage, planned: PlanDraft[MetaPlan]) -> PassEnd:
    """How the pass ended; without a plan, with the task as one part, if that is configured and there are files."""
    plan = planned.value
    if plan is not None:
        plan = _confine_plan(run, plan)
        names = ", ".join(part.id for part in plan.parts)
        how = how_made(run.limits.orchestrator.planning, planned)
        detail = f"{counted(len(plan.parts), 'part')}: {names}{how}"
        return PassEnd(success=True, detail=detail, plan=plan.model_dump_json())
    why = without_plan(run, planned)
    if not may_fall_back(run):
        return PassEnd(success=False, detail=why)
    files = editable_scope(run, package)
    if not files:
        return PassEnd(success=False, detail=f"{why}; {NOTHING_IN_SCOPE}")
    whole = whole_task(run.task.description, files, why)
    paths = ", ".join(whole.parts[0].affected_files)
    return fallen_back(run, package.pass_id, planned.faults, whole, f"{why}; one part in its place: {paths}")


def _confine_plan(run: Run, plan: MetaPlan) -> MetaPlan:
    """The plan whose parts name only files that the user allows to be changed."""
    given = run.task.given.files
    if not given:
        return plan
    places = run.commits.tree().places

    def confined(part: Part) -> Part:
        inside = tuple(path for path in part.affected_files if not places.outside(path))
        return part.model_copy(update={"affected_files": inside or given})

    return plan.model_copy(update={"parts": tuple(map(confined, plan.parts))})


def meta_plan_request(
    models: ModelClient, pass_id: str, words: str, evidence: Evidence, route: Route = "one-call"
) -> ContextRequest:
    """What the meta-plan asks of retrieval."""
    return ContextRequest(
        pass_id=pass_id,
        mode="plan",
        role="reasoning",
        task=words,
        evidence=evidence,
        extra_reserved=beyond_reserve(models, meta_plan_tokens(models, words, evidence, route)),
    )
