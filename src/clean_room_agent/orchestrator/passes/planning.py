"""What the planning passes have in common: the limits of a plan, what is followed where there is no valid one, and what is
recorded about how it was made.
"""

from typing import Any

from clean_room_agent.artifacts.context import ContextPackage
from clean_room_agent.artifacts.names import counted
from clean_room_agent.artifacts.outcomes import EventKind
from clean_room_agent.artifacts.plans import MetaPlan, PartPlan
from clean_room_agent.execute.implement import IMPLEMENT, lines_of_an_answer
from clean_room_agent.execute.plan import Route, files_in_scope
from clean_room_agent.execute.plan_drafts import PlanDraft, PlanLimits
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.run_config import OrchestratorConfig
from clean_room_agent.orchestrator.run_recorder import PassEnd

LOOKING = "looking for what it needs"
NOTHING_IN_SCOPE = "nothing is in scope that one step could change: name the files in the task, or give a plan with --plan FILE"


def plan_limits(models: ModelClient, bounds: OrchestratorConfig, *, short: bool = False) -> PlanLimits:
    """The limits of a plan: the configured ones, and how long an answer can be. Unless it is `short`, code is dropped
    to make space for the answer.
    """
    lines = lines_of_an_answer(models.window(IMPLEMENT), raised=not short)
    return PlanLimits(
        max_parts=bounds.max_parts,
        max_steps=bounds.max_steps_per_part,
        max_lines=lines,
        max_points=bounds.max_change_points,
        max_failures=bounds.max_failure_signals,
    )


def how_made(route: Route, planned: PlanDraft[Any]) -> str:
    """A note on how the plan was made, if not in one call."""
    if route != "decomposed":
        return ""
    asked = sum(verdict.call_id is not None for verdict in planned.verdicts)
    return f" (decomposed: {counted(len(planned.verdicts), 'decision')}, {asked} by the model)"


def without_plan(run: Run, planned: PlanDraft[Any]) -> str:
    """Why there is no plan of the model's."""
    faults = "; ".join(planned.faults)
    return faults if run.limits.orchestrator.planning == "none" else f"no valid plan: {faults}"


def may_fall_back(run: Run) -> bool:
    """Whether the program's own plan may take the place of the model's."""
    return run.limits.orchestrator.plan_fallback or run.limits.orchestrator.planning == "none"


def note_planned(run: Run, pass_id: str, planned: PlanDraft[Any]) -> None:
    """Record the decisions behind the plan, and what was corrected in it."""
    if planned.verdicts:
        run.recorder.plan_decisions(pass_id, planned.verdicts)
    if planned.account is not None:
        run.journal.session.for_pass(pass_id).set_state("verdicts", planned.account.model_dump(mode="json"))
    for note in planned.notes:
        run.recorder.event(pass_id, EventKind.PLAN_NOTE, note)
    for fault in planned.faults:
        run.recorder.event(pass_id, EventKind.PLAN_FAULT, fault)


def fallen_back(
    run: Run, pass_id: str, faults: tuple[str, ...], plan: MetaPlan | PartPlan, detail: str
) -> PassEnd:
    """Record that there was no valid plan, and why; the pass ends with the program's own."""
    run.recorder.plan_fallback(pass_id, faults, plan)
    return PassEnd(success=False, detail=detail, plan=plan.model_dump_json(), fallback=True)


def editable_scope(run: Run, package: ContextPackage) -> tuple[str, ...]:
    """The files in scope that an edit could change, best first."""
    tree = run.commits.tree()
    files = files_in_scope(package, protected=run.limits.edit.protected, scripts=run.deciding.files)
    texts, _ = tree.texts(files)
    return tuple(path for path in files if path in texts and not tree.places.outside(path))


def beyond_reserve(models: ModelClient, need: int) -> int:
    """The tokens by which a prompt's `need` exceeds the configured reserve, so that code never has to be dropped for
    it.
    """
    return max(0, need - models.window("reasoning").reserved)
