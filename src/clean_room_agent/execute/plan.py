"""Makes plans: they are asked for, validated, and sent back once with their faults.

Each `make_...` takes its drafts from one route (`one_call_plans`, or `decomposed_parts`, `decomposed_steps` and
`decomposed_adjustment`); what is promised here holds for each of them.
"""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.context import ContextPackage
from clean_room_agent.artifacts.evidence import Evidence
from clean_room_agent.artifacts.plans import (
    AdjustmentVerdicts,
    Artifact,
    MetaPlan,
    Part,
    PartPlan,
    PlanAdjustment,
    PlanStep,
    PlanVerdict,
    PlanVerdicts,
)
from clean_room_agent.execute.one_call_plans import (
    describe_outcome,
    draft_adjustment,
    draft_meta_plan,
    draft_part_plan,
)
from clean_room_agent.execute.plan_drafts import (
    AdjustmentAsked,
    Draft,
    PartAsked,
    Rejected,
    Revision,
    StepOutcome,
    steps_as_json,
)
from clean_room_agent.execute.plan_validation import (
    adjustment_faults,
    corrected_needs,
    corrected_steps,
    meta_plan_faults,
    part_plan_doubts,
    part_plan_faults,
)
from clean_room_agent.llm.client import ModelClient

if TYPE_CHECKING:
    from clean_room_agent.execute.goal_check import GoalCheck

MAX_DRAFTS = 2
Route = Literal["one-call", "decomposed"]
"""How a plan is made: the model writes all of it, or answers small questions that the program puts together."""

PlanT = TypeVar("PlanT", bound=Artifact)


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


class Planned(Struct, Generic[PlanT], frozen=True, kw_only=True):
    """A valid plan, or what was wrong with the last one that the model gave."""

    value: PlanT | None
    faults: tuple[str, ...]
    """Empty when there is a value."""
    notes: tuple[str, ...]
    """What the program corrected or left out of a prompt, for the record."""
    call_ids: tuple[int, ...]
    verdicts: tuple[PlanVerdict, ...] = ()
    """All decisions on the way to it, each once."""
    account: PlanVerdicts | AdjustmentVerdicts | None = None
    """How the last draft was decided, with all verdicts; None for a plan from one call."""


def make_meta_plan(
    models: ModelClient,
    package: ContextPackage,
    *,
    pass_id: str,
    evidence: Evidence,
    limits: PlanLimits,
    route: Route = "one-call",
) -> Planned[MetaPlan]:
    """The context's task divided into parts.

    Raises:
        WindowExceeded: the context's primary items do not fit.
        ModelError: the server failed.
    """
    ask = _parts_by(route, models, package, evidence, pass_id, limits)

    def draft(rejected: Rejected) -> Draft[MetaPlan]:
        drafted = ask(rejected)
        if drafted.value is None:
            return drafted
        parts, notes = corrected_needs(drafted.value.parts)
        value = drafted.value.model_copy(update={"parts": parts})
        return replace(drafted, value=value, notes=drafted.notes + notes)

    return _settled(draft, lambda plan: meta_plan_faults(plan, max_parts=limits.max_parts))


def make_part_plan(
    models: ModelClient,
    package: ContextPackage,
    part: Part,
    meta_plan: MetaPlan,
    *,
    pass_id: str,
    paths: Collection[str],
    diff: str,
    limits: PlanLimits,
    evidence: Evidence,
    failed: tuple[PartPlan, tuple[str, ...]] | None = None,
    route: Route = "one-call",
    same_context: bool = False,
    done: tuple[PlanStep, ...] = (),
) -> Planned[PartPlan]:
    """`part` divided into steps. `paths` are the files in the tree now; `diff` is what the run changed.

    `same_context` says that `package` is what the meta-plan was made from, and nothing changed since. `failed` is an
    earlier plan of the part, and how each of its steps that were given up ended; the new plan is refused if it no
    longer does what the task asks for. `done` are steps of the part that were accepted.

    Raises:
        WindowExceeded: the context's primary items do not fit.
        ModelError: the server failed.
    """
    asked = PartAsked(
        part=part,
        goal=meta_plan.task_summary if len(meta_plan.parts) > 1 else "",
        diff=diff,
        evidence=evidence,
        paths=paths,
        rationale=meta_plan.rationale,
        same_context=same_context,
        max_targets=limits.max_points,
        max_steps=limits.max_steps,
        max_lines=limits.max_lines,
    )
    ask = _steps_by(route, models, package, asked, pass_id)

    def draft(rejected: Rejected) -> Draft[PartPlan]:
        drafted = ask(rejected)
        if drafted.value is None:
            return drafted
        steps, notes = corrected_needs(drafted.value.steps)
        return _corrected(replace(drafted, notes=drafted.notes + notes), "steps", steps, paths)

    def faults(plan: PartPlan) -> tuple[str, ...]:
        return part_plan_faults(plan, paths=paths, max_steps=limits.max_steps)

    def doubts(plan: PartPlan) -> tuple[str, ...]:
        return part_plan_doubts(plan, part, exists=paths.__contains__)

    goal = None if failed is None else _goal_of(models, package.task, part, failed, done, diff, pass_id)
    return _settled(draft, faults, refused(failed), doubts, goal, lambda plan: plan.steps)


def _parts_by(
    route: Route,
    models: ModelClient,
    package: ContextPackage,
    evidence: Evidence,
    pass_id: str,
    limits: PlanLimits,
) -> Callable[[Rejected], Draft[MetaPlan]]:
    """The function that drafts parts by this route."""
    if route == "decomposed":
        from clean_room_agent.execute.decomposed_parts import DecomposedParts

        return DecomposedParts(
            models,
            package,
            evidence,
            pass_id=pass_id,
            max_parts=limits.max_parts,
            max_points=limits.max_points,
        ).draft
    return lambda rejected: draft_meta_plan(
        models, package, evidence, rejected, pass_id=pass_id, max_parts=limits.max_parts
    )


def _steps_by(
    route: Route, models: ModelClient, package: ContextPackage, asked: PartAsked, pass_id: str
) -> Callable[[Rejected], Draft[PartPlan]]:
    """The function that drafts steps by this route."""
    if route == "decomposed":
        from clean_room_agent.execute.decomposed_steps import DecomposedSteps

        return DecomposedSteps(models, package, asked, pass_id=pass_id).draft
    return lambda rejected: draft_part_plan(
        models,
        package,
        asked.part,
        goal=asked.goal,
        evidence=asked.evidence,
        rejected=rejected,
        pass_id=pass_id,
        diff=asked.diff,
        max_steps=asked.max_steps,
        max_lines=asked.max_lines,
    )


def _adjustment_by(
    route: Route, models: ModelClient, package: ContextPackage | None, asked: AdjustmentAsked, pass_id: str
) -> Callable[[Rejected], Draft[PlanAdjustment]]:
    """The function that drafts an adjustment by this route."""
    if route == "decomposed":
        from clean_room_agent.execute.decomposed_adjustment import DecomposedAdjustment

        return DecomposedAdjustment(models, package, asked, pass_id=pass_id).draft
    return lambda rejected: draft_adjustment(
        models,
        package,
        asked.part,
        asked.remaining,
        asked.outcomes,
        rejected=rejected,
        task=asked.task,
        pass_id=pass_id,
        diff=asked.diff,
        max_steps=asked.max_steps,
    )


def _goal_of(
    models: ModelClient,
    task: str,
    part: Part,
    failed: tuple[PartPlan, tuple[str, ...]],
    done: tuple[PlanStep, ...],
    diff: str,
    pass_id: str,
) -> "GoalCheck":
    """The check of a replanned part against its earlier plan."""
    from clean_room_agent.execute.goal_check import GoalCheck

    accepted = tuple(describe_outcome(StepOutcome(step=step, succeeded=True)) for step in done)
    lost = tuple(f"- {fault}" for fault in failed[1])
    revision = Revision(task=task, part=part, before=failed[0].steps, done=(*accepted, *lost), diff=diff)
    return GoalCheck(models, revision, pass_id=pass_id)


def refused(failed: tuple[PartPlan, tuple[str, ...]] | None) -> Rejected:
    """The plan as an earlier draft; an empty one for None."""
    return Rejected() if failed is None else Rejected(text=steps_as_json(failed[0].steps), faults=failed[1])


def adjust(
    models: ModelClient,
    package: ContextPackage | None,
    part: Part,
    remaining: tuple[PlanStep, ...],
    outcomes: tuple[StepOutcome, ...],
    *,
    task: str,
    pass_id: str,
    paths: Collection[str],
    diff: str,
    limits: PlanLimits,
    route: Route = "one-call",
) -> Planned[PlanAdjustment]:
    """What remains of `part` after the steps in `outcomes`.

    No model is asked if no step remained or, on the decomposed route, if nothing went wrong in the newest step. An
    adjustment that drops a step is refused if the plan then no longer does what the task asks for.

    Raises:
        WindowExceeded: the context's primary items do not fit.
        ModelError: the server failed.
    """
    if not remaining:
        return Planned(value=PlanAdjustment(rationale="no step remained"), faults=(), notes=(), call_ids=())
    failures = outcomes[-1].failures[: limits.max_failures]
    if route == "decomposed" and not failures:
        kept = PlanAdjustment(revised_steps=remaining, rationale="nothing went wrong")
        return Planned(value=kept, faults=(), notes=(), call_ids=())
    completed = tuple(outcome.step for outcome in outcomes if outcome.succeeded)
    failed = tuple(outcome.step for outcome in outcomes if not outcome.succeeded)
    max_steps = max(limits.max_steps - len(completed), 1)
    asked = AdjustmentAsked(
        part=part,
        remaining=remaining,
        outcomes=outcomes,
        failures=failures,
        task=task,
        diff=diff,
        max_steps=max_steps,
    )
    ask = _adjustment_by(route, models, package, asked, pass_id)

    def draft(rejected: Rejected) -> Draft[PlanAdjustment]:
        drafted = ask(rejected)
        value = drafted.value
        return drafted if value is None else _corrected(drafted, "revised_steps", value.revised_steps, paths)

    def faults(plan: PlanAdjustment) -> tuple[str, ...]:
        return adjustment_faults(plan, completed=completed, failed=failed, paths=paths, max_steps=max_steps)

    from clean_room_agent.execute.goal_check import GoalCheck

    revision = Revision(
        task=task, part=part, before=remaining, done=tuple(map(describe_outcome, outcomes)), diff=diff
    )
    goal = GoalCheck(models, revision, pass_id=pass_id)
    return _settled(draft, faults, goal=goal, steps_of=lambda plan: _where_some_went(plan, remaining))


def _where_some_went(plan: PlanAdjustment, remaining: tuple[PlanStep, ...]) -> tuple[PlanStep, ...] | None:
    """The revised steps, if one of the earlier ones is missing from them; else None."""
    kept = {step.id for step in plan.revised_steps}
    return None if kept.issuperset(step.id for step in remaining) else plan.revised_steps


def _settled(
    draft: Callable[[Rejected], Draft[PlanT]],
    faults_of: Callable[[PlanT], tuple[str, ...]],
    rejected: Rejected = Rejected(),  # noqa: B008 - frozen
    doubts_of: Callable[[PlanT], tuple[str, ...]] = lambda _: (),
    goal: "GoalCheck | None" = None,
    steps_of: Callable[[PlanT], tuple[PlanStep, ...] | None] = lambda _: None,
) -> Planned[PlanT]:
    """The first draft without faults. A faulty or unreadable draft is sent back once, with its faults, unless the
    model's answers do not end. Doubts count only against the first draft: a model that repeats itself means it. A draft
    without other faults is compared with its `goal` by the steps that `steps_of` gives; None means nothing to compare.
    """
    notes: tuple[str, ...] = ()
    calls: tuple[int, ...] = ()
    verdicts: dict[PlanVerdict, None] = {}
    account: PlanVerdicts | AdjustmentVerdicts | None = None
    value: PlanT | None = None
    for number in range(MAX_DRAFTS):
        drafted = draft(rejected)
        notes += drafted.notes
        calls += drafted.call_ids
        verdicts |= dict.fromkeys(drafted.verdicts)
        account = drafted.account or account
        faults = (drafted.fault,) if drafted.value is None else faults_of(drafted.value)
        if drafted.value is not None and not faults and number == 0:
            faults = doubts_of(drafted.value)
        steps = steps_of(drafted.value) if drafted.value is not None and not faults else None
        if goal is not None and steps is not None:
            faults = goal.faults(steps)
        if not faults:
            value, rejected = drafted.value, Rejected()
            break
        notes += tuple(f"refused: {fault}" for fault in faults)
        rejected = Rejected(text=drafted.text.strip() if drafted.value is not None else "", faults=faults)
        if drafted.endless:
            break
    if goal is not None:
        verdicts |= dict.fromkeys(goal.verdicts)
    asked = (verdict.call_id for verdict in verdicts if verdict.call_id is not None)
    return Planned(
        value=value,
        faults=rejected.faults,
        notes=notes,
        call_ids=tuple(dict.fromkeys((*calls, *asked))),
        verdicts=tuple(verdicts),
        account=account and account.model_copy(update={"verdicts": tuple(verdicts)}),
    )


def _corrected(
    drafted: Draft[PlanT], field: str, steps: tuple[PlanStep, ...], paths: Collection[str]
) -> Draft[PlanT]:
    """The draft with its `steps`, in `field`, corrected as far as they are unambiguous."""
    assert drafted.value is not None
    right, notes = corrected_steps(steps, paths)
    value = drafted.value.model_copy(update={field: right})
    return replace(drafted, value=value, notes=drafted.notes + notes)
