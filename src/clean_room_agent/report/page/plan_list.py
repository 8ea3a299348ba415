"""The plan of a run with the outcome of each step: its parts, their steps, what they need."""

import json
from collections.abc import Iterable
from typing import Any, TypeVar

from msgspec import Struct
from pydantic import ValidationError

from clean_room_agent.artifacts.outcomes import EventKind, PassType
from clean_room_agent.artifacts.plans import Artifact, MetaPlan, PartPlan, PlanAdjustment, PlanStep
from clean_room_agent.report.trace import PassTrace, RunTrace

ArtifactT = TypeVar("ArtifactT", bound=Artifact)


class PlannedStep(Struct, frozen=True, kw_only=True):
    """A step of the plan."""

    id: str
    description: str
    files: tuple[str, ...]
    needs: tuple[str, ...]
    state: str
    """`done`, `tried, not done`, `not begun`, or `dropped from the plan`."""
    places: tuple[str, ...]
    """Of the passes that tried it."""


class PlannedPart(Struct, frozen=True, kw_only=True):
    """A part of the plan, with the steps of all its plans."""

    id: str
    description: str
    needs: tuple[str, ...]
    steps: tuple[PlannedStep, ...]


def planned_parts(trace: RunTrace) -> tuple[PlannedPart, ...]:
    """The newest division of the task into parts, and every step that was planned or tried; empty if none is recorded."""
    parts: dict[str, tuple[str, tuple[str, ...]]] = {}
    steps: dict[str, dict[str, PlanStep]] = {}
    current: dict[str, set[str]] = {}
    for plan in _plans_in_order(trace):
        if isinstance(plan, MetaPlan):
            parts = {part.id: (part.description, part.depends_on) for part in plan.parts}
        else:
            part_id, planned = plan
            steps.setdefault(part_id, {}).update({step.id: step for step in planned})
            current[part_id] = {step.id for step in planned}
    tried: dict[tuple[str, str], list[PassTrace]] = {}
    for entry in trace.passes:
        if entry.order is not None and entry.order.pass_type is PassType.IMPLEMENT:
            name = (entry.order.part_id, entry.order.step_id)
            tried.setdefault(name, []).append(entry)
            unplanned = PlanStep(id=name[1], description="", target_files=())
            steps.setdefault(name[0], {}).setdefault(name[1], unplanned)
    return tuple(
        PlannedPart(
            id=part_id,
            description=parts.get(part_id, ("", ()))[0],
            needs=parts.get(part_id, ("", ()))[1],
            steps=tuple(
                _planned_step(
                    step, tried.get((part_id, step.id), []), planned=step.id in current.get(part_id, ())
                )
                for step in steps.get(part_id, {}).values()
            ),
        )
        for part_id in dict.fromkeys((*parts, *steps))
    )


def _planned_step(step: PlanStep, tried: list[PassTrace], *, planned: bool) -> PlannedStep:
    if any(entry.is_accepted(attempt) for entry in tried for attempt in entry.attempts):
        state = "done"
    elif tried:
        state = "tried, not done"
    else:
        state = "not begun" if planned else "dropped from the plan"
    return PlannedStep(
        id=step.id,
        description=step.description,
        files=tuple(file.path for file in step.target_files),
        needs=step.depends_on,
        state=state,
        places=tuple(entry.place for entry in tried),
    )


def _plans_in_order(trace: RunTrace) -> Iterable[MetaPlan | tuple[str, tuple[PlanStep, ...]]]:
    """Every plan in the order in which they were made: of the task, or of the steps that a part has from then on."""
    for event in trace.events:
        if event.kind == EventKind.META_PLAN_GIVEN:
            yield from _read_plan(MetaPlan, event.detail)
        elif event.kind == EventKind.PLAN_GIVEN:
            yield from ((plan.part_id, plan.steps) for plan in _read_plan(PartPlan, event.detail))
    for entry in trace.passes:
        text, order = entry.row.final_plan or "", entry.order
        if order is None:
            continue
        if order.pass_type is PassType.META_PLAN:
            yield from _read_plan(MetaPlan, text)
        elif order.pass_type is PassType.PART_PLAN:
            yield from ((order.part_id or plan.part_id, plan.steps) for plan in _read_plan(PartPlan, text))
        elif order.pass_type is PassType.ADJUST:
            yield from ((order.part_id, plan.revised_steps) for plan in _read_plan(PlanAdjustment, text))


def _read_plan(kind: type[ArtifactT], text: str) -> tuple[ArtifactT, ...]:
    """The plan; none if the text is not a plan, as in a record of another version."""
    try:
        value: Any = json.loads(text) if text else None
        return () if value is None else (kind.model_validate(value),)
    except (ValueError, ValidationError):
        return ()
