"""The plan of a run with the outcome of each step: its parts, their steps, their dependencies."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace
from pydantic import ValidationError

from clean_room_agent.artifacts.outcomes import EventKind, PassType
from clean_room_agent.artifacts.plans import (
    Artifact,
    MetaPlan,
    Part,
    PartPlan,
    PlanAdjustment,
    PlanArtifact,
    PlanStep,
)
from clean_room_agent.report.trace import PassTrace, RunTrace

State = Literal["done", "failed", "open", "dropped"]
STATES: Mapping[State, str] = {
    "done": "done",
    "failed": "tried, not done",
    "open": "not begun",
    "dropped": "dropped from the plan",
}
ArtifactT = TypeVar("ArtifactT", bound=Artifact)


class StepNode(Struct, frozen=True, kw_only=True):
    """A step of the plan."""

    id: str
    description: str
    files: tuple[str, ...]
    symbols: tuple[str, ...]
    needs: tuple[str, ...]
    state: State
    attempts: tuple[str, ...]
    """Places of the passes that tried it."""


class PartNode(Struct, frozen=True, kw_only=True):
    """A part of the plan."""

    id: str
    description: str
    files: tuple[str, ...]
    needs: tuple[str, ...]
    state: State
    steps: tuple[StepNode, ...]


class PlanGraph(Struct, frozen=True, kw_only=True):
    """The newest form of the plan, including steps of earlier forms that were tried or dropped."""

    summary: str
    parts: tuple[PartNode, ...]


class _PartSoFar(Struct):
    part: Part
    steps: dict[str, PlanStep] = field(default_factory=dict)
    current: set[str] = field(default_factory=set)
    """The steps of its newest plan."""

    def plan(self, steps: Iterable[PlanStep]) -> None:
        found = tuple(steps)
        self.steps.update({step.id: step for step in found})
        self.current = {step.id for step in found}


def plan_graph(trace: RunTrace) -> PlanGraph | None:
    """The plan of the run; None if none is recorded."""
    summary = ""
    parts: dict[str, _PartSoFar] = {}
    for plan in _plans(trace):
        match plan:
            case MetaPlan():
                summary = plan.task_summary
                parts = {part.id: parts.get(part.id, _PartSoFar(part)) for part in plan.parts}
                for part in plan.parts:
                    parts[part.id].part = part
            case (str() as part_id, steps):
                parts.setdefault(part_id, _PartSoFar(Part(id=part_id, description=""))).plan(steps)
    for order in (entry.order for entry in _attempts(trace) if entry.order is not None):
        tried = parts.setdefault(order.part_id, _PartSoFar(Part(id=order.part_id, description="")))
        tried.steps.setdefault(order.step_id, PlanStep(id=order.step_id, description="", target_files=()))
    if not parts:
        return None
    return PlanGraph(summary=summary, parts=tuple(_part_node(trace, part) for part in parts.values()))


def _plans(trace: RunTrace) -> Iterable[MetaPlan | tuple[str, tuple[PlanStep, ...]]]:
    """Every plan in the order in which they were made: of the task, or of the steps that a part has from then on."""
    for event in trace.events:
        if event.kind == EventKind.META_PLAN_GIVEN:
            yield from _read(MetaPlan, event.detail)
        elif event.kind == EventKind.PLAN_GIVEN:
            for given in _read(PlanArtifact, event.detail):
                yield given.meta_plan
                yield from ((plan.part_id, plan.steps) for plan in given.part_plans)
    for entry in trace.passes:
        text, order = entry.row.final_plan or "", entry.order
        kind = order.pass_type if order else None
        if kind is PassType.META_PLAN:
            yield from _read(MetaPlan, text)
        elif order is not None and kind is PassType.PART_PLAN:
            yield from ((order.part_id or plan.part_id, plan.steps) for plan in _read(PartPlan, text))
        elif order is not None and kind is PassType.ADJUST:
            yield from ((order.part_id, plan.revised_steps) for plan in _read(PlanAdjustment, text))


def _read(kind: type[ArtifactT], text: str) -> tuple[ArtifactT, ...]:
    """The plan; none if the text is not a plan, as in a record of another version."""
    try:
        value: Any = json.loads(text) if text else None
        return () if value is None else (kind.model_validate(value),)
    except (ValueError, ValidationError):
        return ()


def _attempts(trace: RunTrace) -> list[PassTrace]:
    return [entry for entry in trace.passes if entry.order and entry.order.pass_type is PassType.IMPLEMENT]


def _part_node(trace: RunTrace, known: _PartSoFar) -> PartNode:
    steps = tuple(_step_node(trace, known, step) for step in known.steps.values())
    live = [step.state for step in steps if step.state != "dropped"]
    state: State = "open"
    if live and all(each == "done" for each in live):
        state = "done"
    elif "failed" in live:
        state = "failed"
    part = known.part
    return PartNode(
        id=part.id,
        description=part.description,
        files=part.affected_files,
        needs=part.depends_on,
        state=state,
        steps=steps,
    )


def _step_node(trace: RunTrace, known: _PartSoFar, step: PlanStep) -> StepNode:
    tried = [
        entry
        for entry in _attempts(trace)
        if entry.order and (entry.order.part_id, entry.order.step_id) == (known.part.id, step.id)
    ]
    node = StepNode(
        id=step.id,
        description=step.description,
        files=tuple(file.path for file in step.target_files),
        symbols=step.target_symbols,
        needs=step.depends_on,
        state="open" if step.id in known.current else "dropped",
        attempts=tuple(entry.place for entry in tried),
    )
    if any(entry.is_accepted(attempt) for entry in tried for attempt in entry.attempts):
        return replace(node, state="done")
    return replace(node, state="failed") if tried else node
