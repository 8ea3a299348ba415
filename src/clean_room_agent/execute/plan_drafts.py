"""Drafts of plans: what each way of planning returns, before it is validated."""

import json
from collections.abc import Collection, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from clean_room_agent.artifacts.context import ContextPackage
from clean_room_agent.artifacts.evidence import Evidence
from clean_room_agent.artifacts.plans import (
    AdjustmentVerdicts,
    FailureSignal,
    Part,
    PlanStep,
    PlanVerdict,
    PlanVerdicts,
)
from clean_room_agent.evidence_text import describe_evidence, evidence_bound
from clean_room_agent.llm.client import ModelClient, Reply
from clean_room_agent.llm.transport import Sampling

PlanT = TypeVar("PlanT")


class Rejected(Struct, frozen=True, kw_only=True):
    """An earlier draft and what was wrong with it; both empty for the first."""

    text: str = ""
    faults: tuple[str, ...] = ()


class Draft(Struct, Generic[PlanT], frozen=True, kw_only=True):
    """A plan as it was answered, before it is validated."""

    value: PlanT | None
    text: str
    """The answer."""
    fault: str
    """Why there is no value."""
    notes: tuple[str, ...]
    """What the program put right or left out, for the record."""
    call_ids: tuple[int, ...]
    verdicts: tuple[PlanVerdict, ...] = ()
    """What was decided on the way, without a model or by one."""
    account: PlanVerdicts | AdjustmentVerdicts | None = None
    """How the plan came about, where that was decided piece by piece."""
    endless: bool = False
    """Whether the answer, also when it was asked for again, copied the example, repeated itself or ran to its limit."""


class StepOutcome(Struct, frozen=True, kw_only=True):
    """What became of a step that was tried."""

    step: PlanStep
    succeeded: bool
    detail: str = ""
    """Why it failed, or what its tests said."""
    failures: tuple[FailureSignal, ...] = ()
    """What went wrong in it; none for a step that succeeded."""


class Revision(Struct, frozen=True, kw_only=True):
    """What is revised."""

    task: str
    """The user's words."""
    part: Part
    before: tuple[PlanStep, ...]
    done: tuple[str, ...]
    """What became of the steps that were tried, a line each."""
    diff: str


class PartAsked(Struct, frozen=True, kw_only=True):
    """What a part's plan is made for."""

    part: Part
    goal: str
    diff: str
    evidence: Evidence
    paths: Collection[str]
    """The files in the tree now."""
    rationale: str
    """What the meta-plan says of the whole."""
    same_context: bool
    """Whether the context is that of the meta-plan, and it is as it was then."""
    max_targets: int
    max_steps: int
    max_lines: int


class AdjustmentAsked(Struct, frozen=True, kw_only=True):
    """What is adjusted: the newest outcome, the last, is of a step that failed."""

    part: Part
    remaining: tuple[PlanStep, ...]
    outcomes: tuple[StepOutcome, ...]
    failures: tuple[FailureSignal, ...]
    task: str
    diff: str
    max_steps: int


def sampling_after(models: ModelClient, rejected: Rejected) -> Sampling | None:
    """Warm after a draft that could not be read: asked again for the likeliest words, the model gives it again."""
    return models.warm_sampling() if rejected.faults and not rejected.text else None


def shown_evidence(models: ModelClient, evidence: Evidence) -> str:
    """What the tests show, as a planner's prompt says it."""
    return describe_evidence(evidence, bound=evidence_bound(models.window("reasoning").context))


def steps_as_json(steps: Sequence[PlanStep]) -> str:
    """The steps in the shape in which a model answers them, one a line."""
    shaped = [
        {
            "description": step.description,
            "files": [{"path": target.path, "role": target.role} for target in step.target_files],
            "id": step.id,
            "needs": list(step.depends_on),
            "symbols": list(step.target_symbols),
        }
        for step in steps
    ]
    return "\n".join(json.dumps(step, ensure_ascii=False) for step in shaped)


def paths_shown(package: ContextPackage) -> tuple[str, ...]:
    """Those that the prompt shows or lists."""
    return tuple(dict.fromkeys((*(item.path for item in package.items), *package.others)))


def left_out(names: tuple[str, ...]) -> tuple[str, ...]:
    """A note on each thing that did not fit."""
    return tuple(f"did not fit the prompt: {name}" for name in names)


def unreadable_draft(reply: Reply[Any], notes: tuple[str, ...]) -> Draft[PlanT]:
    """No plan, and why."""
    assert reply.bad is not None
    return Draft(
        value=None,
        text=reply.text,
        fault=reply.bad.fault,
        notes=notes,
        call_ids=(reply.call_id,),
        endless=reply.bad.kind in {"repeated", "copied", "truncated"},
    )
