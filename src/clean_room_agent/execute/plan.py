"""Plans: asked for, validated, sent back once with their faults.

Each `make_...` takes its drafts from a route (`one_call`); what is promised here holds for every route.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from clean_room_agent.artifacts.evidence import Evidence
from clean_room_agent.artifacts.package import ContextPackage
from clean_room_agent.artifacts.plans import Artifact, MetaPlan, Part, PartPlan, PlanAdjustment, PlanStep
from clean_room_agent.execute.corrections import corrected_needs, corrected_steps
from clean_room_agent.execute.one_call import (
    Draft,
    Rejected,
    StepOutcome,
    draft_adjustment,
    draft_meta_plan,
    draft_part_plan,
    steps_as_json,
)
from clean_room_agent.execute.validate import (
    adjustment_faults,
    meta_plan_faults,
    part_plan_doubts,
    part_plan_faults,
)
from clean_room_agent.llm.client import ModelClient

MAX_DRAFTS = 2

PlanT = TypeVar("PlanT", bound=Artifact)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLimits:
    """How large a plan may be."""

    max_parts: int
    max_steps: int
    """Of one part."""
    max_lines: int
    """Of the edits of one step, old and new together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned(Generic[PlanT]):
    """A valid plan, or what was wrong with the last one that the model gave."""

    value: PlanT | None
    faults: tuple[str, ...]
    """Empty when there is a value."""
    notes: tuple[str, ...]
    """What the program put right or left out of a prompt, for the record."""
    call_ids: tuple[int, ...]


def make_meta_plan(
    models: ModelClient,
    room: ContextPackage,
    *,
    pass_id: str,
    evidence: Evidence,
    limits: PlanLimits,
) -> Planned[MetaPlan]:
    """The room's task divided into parts.

    Raises:
        WindowExceeded: the room's primary items do not fit.
        ModelError: the server failed.
    """

    def draft(rejected: Rejected) -> Draft[MetaPlan]:
        drafted = draft_meta_plan(
            models, room, evidence, rejected, pass_id=pass_id, max_parts=limits.max_parts
        )
        if drafted.value is None:
            return drafted
        parts, notes = corrected_needs(drafted.value.parts)
        value = drafted.value.model_copy(update={"parts": parts})
        return replace(drafted, value=value, notes=drafted.notes + notes)

    return _settled(draft, lambda plan: meta_plan_faults(plan, max_parts=limits.max_parts))


def make_part_plan(
    models: ModelClient,
    room: ContextPackage,
    part: Part,
    meta_plan: MetaPlan,
    *,
    pass_id: str,
    paths: Collection[str],
    diff: str,
    limits: PlanLimits,
    evidence: Evidence,
    failed: tuple[PartPlan, tuple[str, ...]] | None = None,
) -> Planned[PartPlan]:
    """`part` divided into steps. `paths` are the files in the tree now; `diff` is what the run changed.

    `failed` is an earlier plan of the part, and what became of those of its steps that were given up.

    Raises:
        WindowExceeded: the room's primary items do not fit.
        ModelError: the server failed.
    """

    def draft(rejected: Rejected) -> Draft[PartPlan]:
        drafted = draft_part_plan(
            models,
            room,
            part,
            goal=meta_plan.task_summary,
            evidence=evidence,
            rejected=rejected,
            pass_id=pass_id,
            diff=diff,
            max_steps=limits.max_steps,
            max_lines=limits.max_lines,
        )
        if drafted.value is None:
            return drafted
        steps, notes = corrected_needs(drafted.value.steps)
        return _corrected(replace(drafted, notes=drafted.notes + notes), "steps", steps, paths)

    def faults(plan: PartPlan) -> tuple[str, ...]:
        return part_plan_faults(plan, exists=paths.__contains__, max_steps=limits.max_steps)

    def doubts(plan: PartPlan) -> tuple[str, ...]:
        return part_plan_doubts(plan, part, exists=paths.__contains__)

    return _settled(draft, faults, refused(failed), doubts)


def refused(failed: tuple[PartPlan, tuple[str, ...]] | None) -> Rejected:
    """The plan as an earlier draft; an empty one for None."""
    return Rejected() if failed is None else Rejected(text=steps_as_json(failed[0].steps), faults=failed[1])


def adjust(
    models: ModelClient,
    room: ContextPackage | None,
    part: Part,
    remaining: tuple[PlanStep, ...],
    outcomes: tuple[StepOutcome, ...],
    *,
    task: str,
    pass_id: str,
    paths: Collection[str],
    diff: str,
    limits: PlanLimits,
) -> Planned[PlanAdjustment]:
    """What remains of `part` after the steps in `outcomes`; nothing is asked, and nothing remains, where nothing did.

    Raises:
        WindowExceeded: the room's primary items do not fit.
        ModelError: the server failed.
    """
    if not remaining:
        return Planned(value=PlanAdjustment(rationale="no step remained"), faults=(), notes=(), call_ids=())
    completed = tuple(outcome.step for outcome in outcomes if outcome.succeeded)
    failed = tuple(outcome.step for outcome in outcomes if not outcome.succeeded)
    room_for_steps = max(limits.max_steps - len(completed), 1)

    def draft(rejected: Rejected) -> Draft[PlanAdjustment]:
        drafted = draft_adjustment(
            models,
            room,
            part,
            remaining,
            outcomes,
            rejected=rejected,
            task=task,
            pass_id=pass_id,
            diff=diff,
            max_steps=room_for_steps,
        )
        value = drafted.value
        return drafted if value is None else _corrected(drafted, "revised_steps", value.revised_steps, paths)

    def faults(plan: PlanAdjustment) -> tuple[str, ...]:
        return adjustment_faults(
            plan, completed=completed, failed=failed, exists=paths.__contains__, max_steps=room_for_steps
        )

    return _settled(draft, faults)


def _settled(
    draft: Callable[[Rejected], Draft[PlanT]],
    faults_of: Callable[[PlanT], tuple[str, ...]],
    rejected: Rejected = Rejected(),  # noqa: B008 - frozen
    doubts_of: Callable[[PlanT], tuple[str, ...]] = lambda _: (),
) -> Planned[PlanT]:
    """The first draft without faults; what is wrong with one goes back once, also that it cannot be read, unless the model
    finds no end. What there is to doubt counts against the first draft alone: who says it again means it.
    """
    notes: tuple[str, ...] = ()
    calls: tuple[int, ...] = ()
    for number in range(MAX_DRAFTS):
        drafted = draft(rejected)
        notes += drafted.notes
        calls += (drafted.call_id,)
        faults = (drafted.fault,) if drafted.value is None else faults_of(drafted.value)
        if drafted.value is not None and not faults and number == 0:
            faults = doubts_of(drafted.value)
        if not faults:
            return Planned(value=drafted.value, faults=(), notes=notes, call_ids=calls)
        notes += tuple(f"refused: {fault}" for fault in faults)
        rejected = Rejected(text=drafted.text.strip() if drafted.value is not None else "", faults=faults)
        if drafted.endless:
            break
    return Planned(value=None, faults=rejected.faults, notes=notes, call_ids=calls)


def _corrected(
    drafted: Draft[PlanT], field: str, steps: tuple[PlanStep, ...], paths: Collection[str]
) -> Draft[PlanT]:
    """The draft with its `steps`, in `field`, as they can only be meant."""
    assert drafted.value is not None
    right, notes = corrected_steps(steps, paths)
    value = drafted.value.model_copy(update={field: right})
    return replace(drafted, value=value, notes=drafted.notes + notes)
