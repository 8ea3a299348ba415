"""Makes plans: they are asked for, validated, and sent back once with their faults. Where a model gives no valid one, the
task is followed as one part, and a part as one step.

Each `make_...` takes its drafts from one route (`plan_drafts`, or `decomposed_plan` and `decomposed_adjustment`); what is
promised here holds for each of them.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Literal, TypeVar

from msgspec.structs import replace

from clean_room_agent.artifacts.context import DETAILS, ContextPackage
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
    TargetFile,
)
from clean_room_agent.execute.edits.rules import Places, is_control_path
from clean_room_agent.execute.judgments import YesNo
from clean_room_agent.execute.plan_drafts import (
    AdjustmentAsked,
    PartAsked,
    PlanDraft,
    PlanLimits,
    Rejected,
    StepOutcome,
    draft_adjustment,
    draft_meta_plan,
    draft_part_plan,
    shown_evidence,
    steps_as_json,
)
from clean_room_agent.execute.plan_prompts import (
    CHANGE_POINTS,
    DIFF_CHARS,
    GOAL_CHECK,
    META_PLAN,
    PART_PLAN,
    STEP_DESIGN,
    SYMBOL_TARGETS,
    ChangePointsInputs,
    GoalCheckInputs,
    MetaPlanInputs,
    PartPlanInputs,
    StepDesignInputs,
    SymbolTargetsInputs,
)
from clean_room_agent.execute.plan_validation import (
    adjustment_faults,
    corrected_needs,
    corrected_steps,
    ending_with,
    filled_role,
    meta_plan_faults,
    part_plan_doubts,
    part_plan_faults,
    shortened,
)
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.probes import NOTHING
from clean_room_agent.paths import is_test_configuration, is_test_path, matches_glob
from clean_room_agent.unified_diff import newest_hunks

MAX_DRAFTS = 2
Route = Literal["one-call", "decomposed", "none"]
"""How a plan is made: the model writes all of it, or answers small questions that the program puts together; or nobody is asked."""
NOT_ASKED = "no model is asked for a plan (planning = none)"

PlanT = TypeVar("PlanT", bound=Artifact)
NO_PLAN = GoalCheckInputs(task=NOTHING, part=NOTHING, done=(NOTHING,), before=(NOTHING,), after=(NOTHING,))
WHOLE = "whole"
"""Names the one part, and the one step."""
MAX_FILES = 3
"""Taken from what is in scope: all of them go into the coder's context before anything else does."""


def make_meta_plan(
    models: ModelClient,
    package: ContextPackage,
    *,
    pass_id: str,
    evidence: Evidence,
    limits: PlanLimits,
    route: Route = "one-call",
) -> PlanDraft[MetaPlan]:
    """The context's task divided into parts.

    Raises:
        WindowExceeded: the context's primary items do not fit.
        ModelError: the server failed.
    """
    if route == "none":
        return PlanDraft(value=None, faults=(NOT_ASKED,))
    if route == "decomposed":
        from clean_room_agent.execute.decomposed_plan import DecomposedParts

        ask = DecomposedParts(models, package, evidence, limits, pass_id=pass_id).draft
    else:
        ask = partial(draft_meta_plan, models, package, evidence, limits, pass_id=pass_id)

    def correct(plan: MetaPlan) -> tuple[MetaPlan, tuple[str, ...]]:
        parts, notes = corrected_needs(plan.parts)
        return plan.model_copy(update={"parts": parts}), notes

    def faults(plan: MetaPlan, _: int) -> tuple[str, ...]:
        return meta_plan_faults(plan, max_parts=limits.max_parts)

    return _settle_draft(ask, correct, faults)


def make_part_plan(
    models: ModelClient,
    package: ContextPackage,
    asked: PartAsked,
    *,
    pass_id: str,
    failed: tuple[PartPlan, tuple[str, ...]] | None = None,
    done: tuple[PlanStep, ...] = (),
    route: Route = "one-call",
) -> PlanDraft[PartPlan]:
    """The part divided into steps.

    `failed` is an earlier plan of the part, and how each of its steps that were given up ended; the new plan is refused
    if it no longer does what the task asks for. `done` are steps of the part that were accepted.

    Raises:
        WindowExceeded: the context's primary items do not fit.
        ModelError: the server failed.
    """
    if route == "none":
        return PlanDraft(value=None, faults=(NOT_ASKED,))
    part, paths = asked.part, asked.paths
    if route == "decomposed":
        from clean_room_agent.execute.decomposed_plan import DecomposedSteps

        ask = DecomposedSteps(models, package, asked, pass_id=pass_id).draft
    else:
        ask = partial(draft_part_plan, models, package, asked, pass_id=pass_id)
    goal = None
    if failed is not None:
        accepted = tuple(str(StepOutcome(step=step, succeeded=True)) for step in done)
        outcomes = (*accepted, *(f"- {fault}" for fault in failed[1]))
        goal = GoalCheck(models, package.task, part, failed[0].steps, outcomes, asked.diff, pass_id=pass_id)

    def correct(plan: PartPlan) -> tuple[PartPlan, tuple[str, ...]]:
        steps, notes = corrected_needs(plan.steps)
        steps, more = corrected_steps(steps, paths)
        return plan.model_copy(update={"steps": steps}), notes + more

    def faults(plan: PartPlan, number: int) -> tuple[str, ...]:
        found = part_plan_faults(plan, paths=paths, max_steps=asked.limits.max_steps)
        if not found and number == 0:  # a model that repeats itself means it
            found = part_plan_doubts(plan, part, exists=paths.__contains__)
        return found or (goal.faults(plan.steps) if goal else ())

    return _settle_draft(ask, correct, faults, refused(failed), goal)


def refused(failed: tuple[PartPlan, tuple[str, ...]] | None) -> Rejected:
    """The plan as an earlier draft; an empty one for None."""
    return Rejected() if failed is None else Rejected(text=steps_as_json(failed[0].steps), faults=failed[1])


def adjust(
    models: ModelClient,
    package: ContextPackage | None,
    asked: AdjustmentAsked,
    *,
    pass_id: str,
    route: Route = "one-call",
) -> PlanDraft[PlanAdjustment]:
    """What remains of a part after some of its steps.

    No model is asked if no step remained or, on the decomposed route, if nothing went wrong in the newest step. An
    adjustment that drops a step is refused if the plan then no longer does what the task asks for.

    Raises:
        WindowExceeded: the context's primary items do not fit.
        ModelError: the server failed.
    """
    remaining, paths = asked.remaining, asked.paths
    if not remaining:
        return PlanDraft(value=PlanAdjustment(rationale="no step remained"))
    if route == "decomposed":
        if not asked.failures:
            kept = PlanAdjustment(revised_steps=remaining, rationale="nothing went wrong")
            return PlanDraft(value=kept)
        from clean_room_agent.execute.decomposed_adjustment import DecomposedAdjustment

        ask = DecomposedAdjustment(models, package, asked, pass_id=pass_id).draft
    else:
        ask = partial(draft_adjustment, models, package, asked, pass_id=pass_id)
    completed = tuple(outcome.step for outcome in asked.outcomes if outcome.succeeded)
    failed = tuple(outcome.step for outcome in asked.outcomes if not outcome.succeeded)
    done = tuple(map(str, asked.outcomes))
    goal = GoalCheck(models, asked.task, asked.part, remaining, done, asked.diff, pass_id=pass_id)

    def correct(plan: PlanAdjustment) -> tuple[PlanAdjustment, tuple[str, ...]]:
        steps, notes = corrected_steps(plan.revised_steps, paths)
        return plan.model_copy(update={"revised_steps": steps}), notes

    def faults(plan: PlanAdjustment, _: int) -> tuple[str, ...]:
        found = adjustment_faults(
            plan, completed=completed, failed=failed, paths=paths, max_steps=asked.max_steps
        )
        keeps_all = {step.id for step in plan.revised_steps}.issuperset(step.id for step in remaining)
        return found or (() if keeps_all else goal.faults(plan.revised_steps))

    return _settle_draft(ask, correct, faults, goal=goal)


def _settle_draft(
    ask: Callable[[Rejected], PlanDraft[PlanT]],
    correct: Callable[[PlanT], tuple[PlanT, tuple[str, ...]]],
    faults_of: Callable[[PlanT, int], tuple[str, ...]],
    rejected: Rejected = Rejected(),  # noqa: B008 - frozen
    goal: "GoalCheck | None" = None,
) -> PlanDraft[PlanT]:
    """The first draft without faults, corrected as far as that is unambiguous. A faulty or unreadable draft is sent back
    once, with its faults, unless the model's answers do not end. `faults_of` gets the number of the draft, from 0.
    """
    notes: tuple[str, ...] = ()
    calls: tuple[int, ...] = ()
    verdicts: dict[PlanVerdict, None] = {}
    account: AdjustmentVerdicts | None = None
    value: PlanT | None = None
    for number in range(MAX_DRAFTS):
        drafted = ask(rejected)
        notes += drafted.notes
        calls += drafted.call_ids
        verdicts |= dict.fromkeys(drafted.verdicts)
        account = drafted.account or account
        faults = drafted.faults
        if drafted.value is not None:
            value, corrections = correct(drafted.value)
            notes += corrections
            faults = faults_of(value, number)
        text = drafted.text.strip() if drafted.value is not None else ""
        rejected = Rejected(text=text if faults else "", faults=faults)
        if not faults:
            break
        value = None
        notes += tuple(f"refused: {fault}" for fault in faults)
        if drafted.endless:
            break
    if goal is not None:
        verdicts |= dict.fromkeys(goal.verdicts)
    asked = (verdict.call_id for verdict in verdicts if verdict.call_id is not None)
    return PlanDraft(
        value=value,
        faults=rejected.faults,
        notes=notes,
        call_ids=tuple(dict.fromkeys((*calls, *asked))),
        verdicts=tuple(verdicts),
        account=account and account.model_copy(update={"verdicts": tuple(verdicts)}),
    )


class GoalCheck:
    """Asks whether revisions of a plan still do what the user asked for, before one is followed."""

    def __init__(
        self,
        models: ModelClient,
        task: str,
        part: Part,
        before: tuple[PlanStep, ...],
        done: tuple[str, ...],
        diff: str,
        *,
        pass_id: str,
    ) -> None:
        """`before` are the steps that are revised, `done` the outcomes of those that were tried, one line each."""
        self._task = task
        self._part = part
        self._before = before
        self._done = done
        self._diffs = (newest_hunks(diff, DIFF_CHARS), "")
        self._question = YesNo(
            models,
            GOAL_CHECK,
            pass_id=pass_id,
            nothing=NO_PLAN,
            unreadable=True,
            rule="what cannot be read refuses no plan",
            no_is_final=True,
        )
        self.verdicts: tuple[PlanVerdict, ...] = ()
        """In the order in which they were asked for."""

    def faults(self, after: Sequence[PlanStep]) -> tuple[str, ...]:
        """Why the revised steps are refused; empty if they keep the goal.

        Raises:
            WindowExceeded: the question does not fit, even without the changes made so far.
            ModelError: the server failed.
        """
        inputs = GoalCheckInputs(
            task=self._task,
            part=self._part.description,
            done=self._done,
            before=tuple(f"- {_step_line(step)}" for step in self._before),
            after=tuple(f"- {_step_line(step)}" for step in after),
        )
        kept = {step.id for step in after}
        gone = [step for step in self._before if step.id not in kept]
        before = " ".join(step.id for step in self._before)
        item = f"{before} to {' '.join(step.id for step in after) or 'nothing'}"
        ways = [replace(inputs, diff=diff) for diff in self._diffs]
        (verdict,) = self._question.ask([(item, ways)])
        self.verdicts += (verdict,)
        if verdict.yes:
            return ()
        missing = f"; keep what these steps were for: {'; '.join(map(_step_line, gone))}" if gone else ""
        return (f"with this plan, not all that the task asks for is done{missing}",)


def _step_line(step: PlanStep) -> str:
    return f"{step.id}: {' '.join(step.description.split())} ({', '.join(target.path for target in step.target_files)})"


def meta_plan_tokens(models: ModelClient, task: str, evidence: Evidence, route: Route = "one-call") -> int:
    """Tokens that the meta-plan's prompt and its answer need besides code, paths and an earlier draft."""
    shown = shown_evidence(models, evidence)
    if route == "decomposed":
        points = ChangePointsInputs(evidence=shown, max_points=1, task=task)
        return models.measure(CHANGE_POINTS, points) + CHANGE_POINTS.max_answer_tokens
    inputs = MetaPlanInputs(evidence=shown, max_parts=1, task=task)
    return models.measure(META_PLAN, inputs) + META_PLAN.max_answer_tokens


def part_plan_tokens(
    models: ModelClient,
    task: str,
    part: Part,
    *,
    goal: str,
    evidence: Evidence,
    rejected: Rejected,
    route: Route = "one-call",
) -> int:
    """Tokens that the larger of a part's prompts and its answer need besides code, paths and diff."""
    words, files = part.description, part.affected_files
    about: dict[str, Any] = {
        "evidence": shown_evidence(models, evidence),
        "task": task,
        "part": words,
        "rejected": rejected.text,
        "faults": rejected.faults,
    }
    if route == "one-call":
        inputs = PartPlanInputs(goal=goal, files=files, max_steps=1, max_lines=1, **about)
        return models.measure(PART_PLAN, inputs) + PART_PLAN.max_answer_tokens
    targets = SymbolTargetsInputs(goal=goal, files=files, max_targets=1, **about)
    steps = StepDesignInputs(targets=files, max_steps=1, max_lines=1, **about)
    return max(
        models.measure(SYMBOL_TARGETS, targets) + SYMBOL_TARGETS.max_answer_tokens,
        models.measure(STEP_DESIGN, steps) + STEP_DESIGN.max_answer_tokens,
    )


def files_in_scope(
    context: ContextPackage, *, protected: Iterable[str], scripts: Collection[str]
) -> tuple[str, ...]:
    """The files of a context that a change may touch, best first: named before found, shown whole before outlined.

    Files that decide whether tests pass (`scripts` are those that the test commands run) are included only if the task
    names them.
    """
    patterns = tuple(protected)

    def allowed(path: str) -> bool:
        if is_control_path(path) or matches_glob(path, patterns):
            return False
        decides = is_test_path(path) or is_test_configuration(path) or path in scripts
        return not decides or path in context.task

    items = sorted(
        (item for item in context.items if item.section == "code"),
        key=lambda item: (item.tier, DETAILS.index(item.detail), -item.score, item.path),
    )
    found = (*(item.path for item in items), *(item.path for item in context.dropped))
    return tuple(path for path in dict.fromkeys(found) if allowed(path))


def whole_task(task: str, files: Iterable[str], why: str) -> MetaPlan:
    """A plan with one part: the task's words and the first of `files`. Its rationale is `why` there is no other plan."""
    words = shortened(task)
    part = Part(id=WHOLE, description=words, affected_files=tuple(files)[:MAX_FILES])
    return MetaPlan(task_summary=words, parts=(part,), rationale=why)


def whole_part(part: Part, task: str, scope: Iterable[str], paths: Collection[str]) -> PartPlan | None:
    """A plan with one step: the part's words and the files that it names, else the first of `scope`; None if there are
    none.

    A named file that is not among `paths`, those in the tree, is taken for the only one that ends in that name.
    Otherwise it is created, if the tree has a file with the same suffix; but not a test file that the task does not
    name, nor a name without a suffix. A path where no file can be is left out.
    """
    places = Places.of(paths)
    kinds = {PurePosixPath(path).suffix for path in paths} - {""}
    meant = (path if path in paths else ending_with(path, paths) or path for path in part.affected_files)
    named = dict.fromkeys(
        path
        for path in meant
        if (path in paths and not places.outside(path))
        or (
            PurePosixPath(path).suffix in kinds
            and (path in task or not is_test_path(path))
            and not places.obstacle(path)
        )
    )
    files = tuple(named or dict.fromkeys(tuple(scope)[:MAX_FILES]))
    if not files:
        return None
    words = part.description.strip()
    step = PlanStep(
        id=WHOLE,
        description=words if len(files) == 1 else f"{words}\nChange only those of the files that need it.",
        target_files=tuple(TargetFile(path=path, role=filled_role(path, paths)) for path in files),
        any_of_files=True,
    )
    return PartPlan(part_id=part.id, task_summary=words, steps=(step,))
