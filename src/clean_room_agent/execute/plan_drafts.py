"""Drafts of plans: what each route of planning returns, before it is validated."""

import json
from collections.abc import Collection, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from clean_room_agent.artifacts.context import ContextPackage
from clean_room_agent.artifacts.evidence import Evidence, describe_evidence, evidence_bound
from clean_room_agent.artifacts.plans import (
    AdjustmentVerdicts,
    FailureSignal,
    Part,
    PlanStep,
    PlanVerdict,
    PlanVerdicts,
)
from clean_room_agent.llm.client import ModelClient, Reply
from clean_room_agent.llm.transport import Sampling

PlanT = TypeVar("PlanT")


class Rejected(Struct, frozen=True, kw_only=True):
    """An earlier draft and what was wrong with it; both empty for the first."""

    text: str = ""
    faults: tuple[str, ...] = ()


class Draft(Struct, Generic[PlanT], frozen=True, kw_only=True):
    """A plan as the model answered it, before it is validated."""

    value: PlanT | None
    text: str
    """The answer."""
    fault: str
    """Why there is no value."""
    notes: tuple[str, ...]
    """What the program corrected or left out, for the record."""
    call_ids: tuple[int, ...]
    verdicts: tuple[PlanVerdict, ...] = ()
    """What was decided on the way, without a model or by one."""
    account: PlanVerdicts | AdjustmentVerdicts | None = None
    """How the plan was decided, if it was made from small questions."""
    endless: bool = False
    """Whether the answer copied the example, repeated itself or ran to its limit, even when it was asked for again."""


class StepOutcome(Struct, frozen=True, kw_only=True):
    """The outcome of a step that was tried."""

    step: PlanStep
    succeeded: bool
    detail: str = ""
    """Why it failed, or what its tests reported."""
    failures: tuple[FailureSignal, ...] = ()
    """What went wrong in it; empty for a step that succeeded."""


class Revision(Struct, frozen=True, kw_only=True):
    """What is revised."""

    task: str
    """The user's words."""
    part: Part
    before: tuple[PlanStep, ...]
    done: tuple[str, ...]
    """The outcomes of the steps that were tried, one line each."""
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
    """What the meta-plan says about the whole task."""
    same_context: bool
    """Whether the context is that of the meta-plan, unchanged since then."""
    max_targets: int
    max_steps: int
    max_lines: int


class AdjustmentAsked(Struct, frozen=True, kw_only=True):
    """What is adjusted. The last outcome is the newest, and belongs to a step that failed."""

    part: Part
    remaining: tuple[PlanStep, ...]
    outcomes: tuple[StepOutcome, ...]
    failures: tuple[FailureSignal, ...]
    task: str
    diff: str
    max_steps: int


def sampling_after(models: ModelClient, rejected: Rejected) -> Sampling | None:
    """Sampling with a temperature after an unreadable draft, since greedy decoding would repeat it; else None."""
    return models.warm_sampling() if rejected.faults and not rejected.text else None


def shown_evidence(models: ModelClient, evidence: Evidence) -> str:
    """What the tests show, in the words of a planner's prompt."""
    return describe_evidence(evidence, bound=evidence_bound(models.window("reasoning").context))


def steps_as_json(steps: Sequence[PlanStep]) -> str:
    """The steps as JSON in the format of the answer, one per line."""
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
    """The paths that the prompt shows or lists."""
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
