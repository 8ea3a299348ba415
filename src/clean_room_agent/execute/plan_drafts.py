"""Drafts of plans, before they are validated, and how they are made in one call: the model is asked for a complete plan.

`decomposed_plan.py` and `decomposed_adjustment.py` make the same drafts from small questions.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.context import ContextPackage
from clean_room_agent.artifacts.evidence import Evidence, describe_evidence, evidence_bound
from clean_room_agent.artifacts.names import is_plan_id
from clean_room_agent.artifacts.plans import (
    AdjustmentVerdicts,
    FailureSignal,
    MetaPlan,
    Part,
    PartPlan,
    PlanAdjustment,
    PlanStep,
    PlanVerdict,
    TargetFile,
)
from clean_room_agent.execute.plan_prompts import (
    ADJUSTMENT,
    META_PLAN,
    PART_PLAN,
    AdjustmentInputs,
    MetaPlanInputs,
    PartPlanInputs,
    PlanInputs,
    StepAnswer,
)
from clean_room_agent.execute.prompt_fitting import PromptContents, all_contents, fit, planner_contents
from clean_room_agent.llm.answers import AnswerT
from clean_room_agent.llm.client import AGAIN, ModelClient, Reply
from clean_room_agent.llm.prompt import Prompt

PlanT = TypeVar("PlanT")
PlanInputsT = TypeVar("PlanInputsT", bound=PlanInputs)


class PlanLimits(Struct, frozen=True, kw_only=True):
    """How large a plan may be."""

    max_parts: int
    max_steps: int
    """Of one part."""
    max_lines: int
    """Of the edits of one step, old and new together."""
    max_points: int = 8
    """Places that a task or a part changes; each pair of them may be a question."""
    max_failures: int = 3
    """Failures of a step that are examined; each combined with each step may be a question."""


class Rejected(Struct, frozen=True, kw_only=True):
    """An earlier draft and what was wrong with it; both empty for the first."""

    text: str = ""
    faults: tuple[str, ...] = ()


class PlanDraft(Struct, Generic[PlanT], frozen=True, kw_only=True):
    """A plan, or what was wrong with the answer; first as the model gave it, then as it was corrected and found valid."""

    value: PlanT | None
    faults: tuple[str, ...] = ()
    """Why there is no value."""
    notes: tuple[str, ...] = ()
    """What the program corrected, or left out of a prompt, for the record."""
    call_ids: tuple[int, ...] = ()
    verdicts: tuple[PlanVerdict, ...] = ()
    """What was decided on the way, without a model or by one, each once."""
    account: AdjustmentVerdicts | None = None
    """How an adjustment was decided, if it was made from small questions."""
    text: str = ""
    """The answer, to be shown if it is refused."""
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

    def __str__(self) -> str:
        verdict = "done" if self.succeeded else "failed"
        detail = f" ({self.detail})" if self.detail else ""
        return f"- {self.step.id}, {verdict}: {self.step.description}{detail}"


class PartAsked(Struct, frozen=True, kw_only=True):
    """What a part's plan is made for."""

    part: Part
    meta: MetaPlan
    """The plan that the part is of."""
    evidence: Evidence
    diff: str
    """What the run changed so far."""
    paths: Collection[str]
    """The files in the tree now."""
    limits: PlanLimits
    same_context: bool = False
    """Whether the context is that of the meta-plan, unchanged since then."""

    @property
    def goal(self) -> str:
        """The whole plan in a sentence, if there are other parts."""
        return self.meta.task_summary if len(self.meta.parts) > 1 else ""


class AdjustmentAsked(Struct, frozen=True, kw_only=True):
    """What is adjusted. The last outcome is the newest."""

    part: Part
    remaining: tuple[PlanStep, ...]
    outcomes: tuple[StepOutcome, ...]
    task: str
    diff: str
    paths: Collection[str]
    """The files in the tree now."""
    limits: PlanLimits

    @property
    def failures(self) -> tuple[FailureSignal, ...]:
        """What went wrong in the newest step, as far as that is examined."""
        return self.outcomes[-1].failures[: self.limits.max_failures]

    @property
    def max_steps(self) -> int:
        """How many steps may remain."""
        return max(self.limits.max_steps - sum(outcome.succeeded for outcome in self.outcomes), 1)


def draft_meta_plan(
    models: ModelClient,
    package: ContextPackage,
    evidence: Evidence,
    limits: PlanLimits,
    rejected: Rejected,
    *,
    pass_id: str,
) -> PlanDraft[MetaPlan]:
    """The task in parts, as the model answers in one call."""
    inputs = MetaPlanInputs(
        evidence=shown_evidence(models, evidence),
        max_parts=limits.max_parts,
        task=package.task,
        paths=paths_shown(package),
    )
    wanted = planner_contents(package, rejected=rejected.text)
    reply, notes = ask_for_draft(models, META_PLAN, inputs, wanted, rejected, pass_id=pass_id)
    if reply.value is None:
        return unreadable_draft(reply, notes)
    ids = _valid_ids([part.id for part in reply.value.parts], "p")
    parts = tuple(
        Part(
            id=ids[part.id],
            description=part.description.strip(),
            affected_files=tuple(dict.fromkeys(part.files)),
            depends_on=_renamed_needs(part.needs, ids),
        )
        for part in reply.value.parts
    )
    plan = MetaPlan(task_summary=reply.value.summary, parts=parts, rationale=reply.value.analysis)
    return PlanDraft(
        value=plan, text=reply.text, notes=notes + _renamed_notes(ids), call_ids=(reply.call_id,)
    )


def draft_part_plan(
    models: ModelClient, package: ContextPackage, asked: PartAsked, rejected: Rejected, *, pass_id: str
) -> PlanDraft[PartPlan]:
    """A part in steps, as the model answers in one call."""
    inputs = PartPlanInputs(
        evidence=shown_evidence(models, asked.evidence),
        task=package.task,
        goal=asked.goal,
        part=asked.part.description,
        files=asked.part.affected_files,
        max_steps=asked.limits.max_steps,
        max_lines=asked.limits.max_lines,
        paths=(*asked.part.affected_files, *paths_shown(package)),
    )
    wanted = planner_contents(package, asked.diff, rejected.text)
    reply, notes = ask_for_draft(models, PART_PLAN, inputs, wanted, rejected, pass_id=pass_id)
    if reply.value is None:
        return unreadable_draft(reply, notes)
    steps, renamed = steps_from(reply.value.steps)
    plan = PartPlan(
        part_id=asked.part.id, task_summary=reply.value.summary, steps=steps, rationale=reply.value.analysis
    )
    return PlanDraft(value=plan, text=reply.text, notes=notes + renamed, call_ids=(reply.call_id,))


def draft_adjustment(
    models: ModelClient,
    package: ContextPackage | None,
    asked: AdjustmentAsked,
    rejected: Rejected,
    *,
    pass_id: str,
) -> PlanDraft[PlanAdjustment]:
    """What remains of a part, as the model answers in one call."""
    inputs = AdjustmentInputs(
        task=asked.task,
        part=asked.part.description,
        done=tuple(map(str, asked.outcomes)),
        remaining=steps_as_json(asked.remaining),
        max_steps=asked.max_steps,
    )
    wanted = all_contents(package, asked.diff, rejected=rejected.text)
    reply, notes = ask_for_draft(models, ADJUSTMENT, inputs, wanted, rejected, pass_id=pass_id)
    if reply.value is None:
        return unreadable_draft(reply, notes)
    steps, renamed = steps_from(reply.value.steps)
    done = [one.step for one in asked.outcomes if one.succeeded]
    repeated = [step.id for step in steps if any(_is_same(step, other) for other in done)]
    plan = PlanAdjustment(
        revised_steps=tuple(step for step in steps if step.id not in repeated),
        rationale=reply.value.analysis,
        changes_made=reply.value.changes,
    )
    notes += (*renamed, *(f"left out again: step {name}, which is done" for name in repeated))
    return PlanDraft(value=plan, text=reply.text, notes=notes, call_ids=(reply.call_id,))


def _is_same(step: PlanStep, other: PlanStep) -> bool:
    return (step.id, step.description, step.target_files) == (other.id, other.description, other.target_files)


def ask_for_draft(
    models: ModelClient,
    prompt: Prompt[PlanInputsT, AnswerT],
    inputs: PlanInputsT,
    wanted: PromptContents,
    rejected: Rejected,
    *,
    pass_id: str,
) -> tuple[Reply[AnswerT], tuple[str, ...]]:
    """The reply to a prompt with these inputs that shows as much of `wanted` as fits, and a note on each thing that did not.

    After an unreadable draft it is sampled with a temperature, since greedy decoding would repeat it.

    Raises:
        WindowExceeded: the primary items of the context do not fit.
        ModelError: the server failed.
    """

    def with_contents(carried: PromptContents) -> PlanInputsT:
        return replace(
            inputs,
            context=carried.sections,
            others=carried.others,
            diff=carried.diff,
            rejected=carried.rejected,
            faults=rejected.faults,
        )

    fitted = fit(models, prompt, with_contents, wanted, answer_tokens=prompt.max_answer_tokens)
    sampling = AGAIN if rejected.faults and not rejected.text else None
    reply = models.ask(prompt, fitted.inputs, pass_id=pass_id, sampling=sampling)
    return reply, tuple(f"did not fit the prompt: {name}" for name in fitted.dropped)


def shown_evidence(models: ModelClient, evidence: Evidence) -> str:
    """What the tests show, in the words of a planner's prompt."""
    return describe_evidence(evidence, bound=evidence_bound(models.window("reasoning").context))


def paths_shown(package: ContextPackage) -> tuple[str, ...]:
    """The paths that the prompt shows or lists."""
    return tuple(dict.fromkeys((*(item.path for item in package.items), *package.others)))


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


def unreadable_draft(reply: Reply[Any], notes: tuple[str, ...]) -> PlanDraft[PlanT]:
    """No plan, and why."""
    assert reply.bad is not None
    return PlanDraft(
        value=None,
        text=reply.text,
        faults=(reply.bad.fault,),
        notes=notes,
        call_ids=(reply.call_id,),
        endless=reply.bad.kind in {"repeated", "copied", "truncated"},
    )


def steps_from(answers: Sequence[StepAnswer]) -> tuple[tuple[PlanStep, ...], tuple[str, ...]]:
    """The steps as answered, and a note on each id that had to be replaced."""
    ids = _valid_ids([step.id for step in answers], "s")
    steps = tuple(
        PlanStep(
            id=ids[step.id],
            description=step.description.strip(),
            target_files=tuple(
                dict.fromkeys(TargetFile(path=file.path, role=file.role) for file in step.files)
            ),
            target_symbols=tuple(dict.fromkeys(symbol.strip() for symbol in step.symbols if symbol.strip())),
            depends_on=_renamed_needs(step.needs, ids),
        )
        for step in answers
    )
    return steps, _renamed_notes(ids)


def _valid_ids(ids: Sequence[str], prefix: str) -> dict[str, str]:
    """Each id as a pass id may contain it: itself or, if it is not allowed, a fresh one."""
    valid = {name: name for name in ids if is_plan_id(name)}
    taken = set(valid)
    for number, name in enumerate(ids, 1):
        if name not in valid:
            fresh = f"{prefix}{number}"
            while fresh in taken:
                fresh = f"{fresh}x"
            taken.add(fresh)
            valid[name] = fresh
    return valid


def _renamed_notes(ids: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"id {old!r} became {new}" for old, new in ids.items() if old != new)


def _renamed_needs(names: Sequence[str], ids: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ids.get(name, name) for name in names))
