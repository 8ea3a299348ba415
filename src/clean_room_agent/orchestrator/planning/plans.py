"""The planning passes: the task into parts, and a part into steps.

Where no valid plan comes, the whole task is one part, a part is one step; a level that has no files for it ends alone.
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from typing import Any

from clean_room_agent.artifacts.event_kinds import EventKind
from clean_room_agent.artifacts.evidence import Evidence
from clean_room_agent.artifacts.ids import ID_LENGTH, meta_plan_pass, part_plan_pass, relative_pass
from clean_room_agent.artifacts.outcomes import PassType
from clean_room_agent.artifacts.package import ContextPackage
from clean_room_agent.artifacts.plans import MetaPlan, Part, PartPlan
from clean_room_agent.artifacts.tasks import ContextRequest
from clean_room_agent.execute.decomposed_parts import change_points_tokens
from clean_room_agent.execute.decomposed_steps import symbol_targets_tokens
from clean_room_agent.execute.fallback_plans import files_in_scope, whole_part, whole_task
from clean_room_agent.execute.implement import lines_of_an_answer
from clean_room_agent.execute.one_call_plans import meta_plan_tokens, part_plan_tokens
from clean_room_agent.execute.plan import (
    PlanLimits,
    Planned,
    Route,
    make_meta_plan,
    make_part_plan,
    refused,
)
from clean_room_agent.execute.plan_drafts import Rejected
from clean_room_agent.execute.prompts.implement import IMPLEMENT
from clean_room_agent.git.history import readable_diff
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.orchestrator.config import OrchestratorConfig
from clean_room_agent.orchestrator.events import PassProgress
from clean_room_agent.orchestrator.planning.plan_pass import PlanPass, plan_pass
from clean_room_agent.orchestrator.resume.kept_context import CONTEXT, fits
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.run_recorder import PassEnd
from clean_room_agent.orchestrator.testing.command_files import scripts_of

NOTHING_IN_SCOPE = "nothing is in scope that one step could change: name the files in the task, or give a plan with --plan FILE"


def plan_parts(run: Run, evidence: Evidence) -> MetaPlan | None:
    """The task in parts; None where no valid plan came, and the run's reason then says why."""
    which = PlanPass(kind=PassType.META_PLAN, pass_id=meta_plan_pass(run.task_id), title="plan")
    end = plan_pass(run, which, (run.base,), lambda: _plan_parts(run, which.pass_id, evidence))
    if end.plan is None:
        run.progress.no_plan_reason = end.detail
        return None
    return MetaPlan.model_validate_json(end.plan)


def _plan_parts(run: Run, pass_id: str, evidence: Evidence) -> PassEnd:
    route = run.limits.orchestrator.planning
    package = _package(run, meta_plan_request(run.models, pass_id, run.words, evidence, route))
    run.observer.notice(PassProgress(doing="dividing the task into parts"))
    planned = make_meta_plan(
        run.models,
        package,
        pass_id=pass_id,
        evidence=evidence,
        limits=plan_limits(run.models, run.limits.orchestrator),
        route=route,
    )
    note_planned(run, pass_id, planned)
    plan = planned.value
    if plan is None:
        return _instead_of_parts(run, package, planned.faults)
    names = ", ".join(part.id for part in plan.parts)
    detail = f"{len(plan.parts)} part{'s' if len(plan.parts) != 1 else ''}: {names}{how_made(route, planned)}"
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
    request = part_plan_request(
        run.models,
        pass_id,
        run.words,
        part,
        goal=meta.task_summary,
        evidence=evidence,
        known=known,
        rejected=refused(earlier),
        route=run.limits.orchestrator.planning,
    )
    shared = _shared_package(run, meta, request) if failed is None else None
    package = shared or _package(run, request)
    run.observer.notice(PassProgress(doing="dividing it into steps"))
    planned = make_part_plan(
        run.models,
        package,
        part,
        meta,
        pass_id=pass_id,
        paths=known,
        diff=readable_diff(run.repo, run.base, run.progress.head),
        limits=plan_limits(run.models, run.limits.orchestrator, short=failed is not None and failed.cut_off),
        evidence=evidence,
        failed=earlier,
        same_context=shared is not None,
        done=tuple(entry.step for entry in run.progress.done if entry.part_id == part.id),
        route=run.limits.orchestrator.planning,
    )
    note_planned(run, pass_id, planned)
    plan = planned.value
    if plan is None:
        return _instead_of_steps(run, package, part, planned.faults, failed)
    if failed is not None:
        plan = _with_own_names(plan, f"-{failed.number + 1}")
    how = how_made(run.limits.orchestrator.planning, planned)
    detail = f"{len(plan.steps)} step{'s' if len(plan.steps) != 1 else ''}{how}"
    return PassEnd(success=True, detail=detail, plan=plan.model_dump_json())


def _instead_of_parts(run: Run, package: ContextPackage, faults: tuple[str, ...]) -> PassEnd:
    """The end of a meta-plan that did not come: the task as one part, where that is wanted and has files."""
    why = f"no valid plan: {'; '.join(faults)}"
    if not run.limits.orchestrator.plan_fallback:
        return PassEnd(success=False, detail=why)
    files = _editable_scope(run, package)
    if not files:
        return PassEnd(success=False, detail=f"{why}; {NOTHING_IN_SCOPE}")
    plan = whole_task(run.task, files, why)
    (part,) = plan.parts
    return _fallen_back(
        run, package.pass_id, faults, plan, f"{why}; one part in its place: {_list(part.affected_files)}"
    )


def _instead_of_steps(
    run: Run, package: ContextPackage, part: Part, faults: tuple[str, ...], failed: FailedPlan | None
) -> PassEnd:
    """The end of a part's plan that did not come: the part as one step, where that is wanted, new, and has files."""
    why = f"no valid plan: {'; '.join(faults)}"
    if not run.limits.orchestrator.plan_fallback:
        return PassEnd(success=False, detail=why)
    plan = whole_part(part, run.task, _editable_scope(run, package), run.tree().paths)
    if plan is None:
        return PassEnd(success=False, detail=f"{why}; {NOTHING_IN_SCOPE}")
    targets = plan.steps[0].target_files
    if failed is not None:
        if any(step.any_of_files and step.target_files == targets for step in failed.plan.steps):
            return PassEnd(success=False, detail=f"{why}; the part as one step was tried before")
        plan = _with_own_names(plan, f"-{failed.number + 1}")
    files = _list(target.path for target in targets)
    return _fallen_back(run, package.pass_id, faults, plan, f"{why}; one step in its place: {files}")


def _fallen_back(
    run: Run, pass_id: str, faults: tuple[str, ...], plan: MetaPlan | PartPlan, detail: str
) -> PassEnd:
    run.recorder.plan_fallback(pass_id, faults, plan)
    return PassEnd(success=False, detail=detail, plan=plan.model_dump_json(), fallback=True)


def _editable_scope(run: Run, package: ContextPackage) -> tuple[str, ...]:
    """The files in scope that an edit could change, best first."""
    tree = run.tree()
    scripts = scripts_of(run.bench.commands, tree.paths)
    files = files_in_scope(package, protected=run.limits.edit.protected, scripts=scripts)
    texts, _ = tree.texts(files)
    return tuple(path for path in files if path in texts)


def _list(paths: Iterable[str]) -> str:
    return ", ".join(paths)


def _shared_package(run: Run, meta: MetaPlan, request: ContextRequest) -> ContextPackage | None:
    """The context of the meta-plan, where nothing was changed since and it serves the part as well; else None."""
    first = meta_plan_pass(run.task_id)
    package = run.journal.newest(first, CONTEXT, ContextPackage)
    if (
        package is None
        or run.progress.head != run.base
        or not serves_part(run.models, package, meta, request)
    ):
        return None
    run.recorder.event(request.pass_id, EventKind.CONTEXT_OF, relative_pass(first))
    return replace(package, pass_id=request.pass_id)


def serves_part(
    models: ModelClient, package: ContextPackage, meta: MetaPlan, request: ContextRequest
) -> bool:
    """Whether the context of the meta-plan serves the only part of a task as well: the task's words are the same, it shows
    all files that the part names, and the part's prompt leaves it enough.
    """
    return (
        len(meta.parts) == 1
        and package.task == request.task
        and {item.path for item in package.items}.issuperset(request.files)
        and fits(package, models.window(request.role), request.extra_reserved)
    )


def meta_plan_request(
    models: ModelClient, pass_id: str, words: str, evidence: Evidence, route: Route = "one-call"
) -> ContextRequest:
    """What the meta-plan asks of retrieval."""
    tokens_of = change_points_tokens if route == "decomposed" else meta_plan_tokens
    return ContextRequest(
        pass_id=pass_id,
        mode="plan",
        role="reasoning",
        task=words,
        evidence=evidence,
        extra_reserved=_beyond_reserve(models, tokens_of(models, words, evidence)),
    )


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
    """What the plan of a part asks of retrieval; `known` are the files that there are."""
    tokens_of = symbol_targets_tokens if route == "decomposed" else part_plan_tokens
    need = tokens_of(models, words, part, goal=goal, evidence=evidence, rejected=rejected)
    return ContextRequest(
        pass_id=pass_id,
        mode="plan",
        role="reasoning",
        task=words,
        focus=part.description,
        files=tuple(path for path in part.affected_files if path in known),
        evidence=evidence,
        extra_reserved=_beyond_reserve(models, need),
    )


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


def _beyond_reserve(models: ModelClient, need: int) -> int:
    """What of a prompt's `need` the configured reserve does not hold, so that its code never has to go for it."""
    return max(0, need - models.window("reasoning").reserved)


def _package(run: Run, request: ContextRequest) -> ContextPackage:
    run.observer.notice(PassProgress(doing="looking for what it needs"))
    return run.context.retrieve(request)


def plan_limits(models: ModelClient, bounds: OrchestratorConfig, *, short: bool = False) -> PlanLimits:
    """The bounds of a plan: the configured ones, and what an answer can hold, for which code goes unless it is `short`."""
    lines = lines_of_an_answer(models.window(IMPLEMENT), raised=not short)
    return PlanLimits(
        max_parts=bounds.max_parts,
        max_steps=bounds.max_steps_per_part,
        max_lines=lines,
        max_points=bounds.max_change_points,
        max_failures=bounds.max_failure_signals,
    )


def how_made(route: Route, planned: Planned[Any]) -> str:
    """How the plan came about, where it was not asked for as a whole."""
    if route == "one-call":
        return ""
    asked = sum(verdict.call_id is not None for verdict in planned.verdicts)
    return f" (decomposed: {len(planned.verdicts)} decisions, {asked} by the model)"


def note_planned(run: Run, pass_id: str, planned: Planned[Any]) -> None:
    """The record has what was decided for the plan, and what was put right in it; the session has the decisions."""
    if planned.verdicts:
        run.recorder.plan_decisions(pass_id, planned.verdicts)
    if planned.account is not None:
        run.session.for_pass(pass_id).set_state("verdicts", planned.account.model_dump(mode="json"))
    for note in planned.notes:
        run.recorder.event(pass_id, EventKind.PLAN_NOTE, note)
    for fault in planned.faults:
        run.recorder.event(pass_id, EventKind.PLAN_FAULT, fault)
