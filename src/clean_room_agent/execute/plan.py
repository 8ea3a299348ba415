"""Plans: asked for, validated, sent back once with their faults; and the file that a person reviews.

Each `make_...` takes its drafts from a route (`one_call`); what is promised here holds for every route.
"""

import json
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from pydantic import ValidationError

from clean_room_agent.artifacts.evidence import Evidence
from clean_room_agent.artifacts.package import ContextPackage
from clean_room_agent.artifacts.plans import (
    FORMAT_VERSION,
    AffectedFile,
    Artifact,
    Change,
    ChangeAction,
    FileRole,
    MetaPlan,
    Part,
    PartPlan,
    PlanAdjustment,
    PlanArtifact,
    PlanStep,
    TargetFile,
)
from clean_room_agent.errors import ArtifactError
from clean_room_agent.execute.corrections import corrected_steps
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
    artifact_faults,
    in_order,
    meta_plan_faults,
    part_plan_faults,
)
from clean_room_agent.llm.client import ModelClient

SINGLE_ID = "plan"
"""Names the one part and the one step that follow a reviewed plan."""
MAX_DRAFTS = 2
ACTIONS: dict[FileRole, ChangeAction] = {"modify": "modify", "create": "add", "delete": "delete"}

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
        return draft_meta_plan(models, room, evidence, rejected, pass_id=pass_id, max_parts=limits.max_parts)

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
        return drafted if drafted.value is None else _corrected(drafted, "steps", drafted.value.steps, paths)

    def faults(plan: PartPlan) -> tuple[str, ...]:
        return part_plan_faults(plan, exists=paths.__contains__, max_steps=limits.max_steps)

    return _settled(draft, faults, refused(failed))


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


def build_artifact(
    *,
    task_id: str,
    task: str,
    model: str,
    created_at: str,
    meta_plan: MetaPlan,
    part_plans: tuple[PartPlan, ...],
) -> PlanArtifact:
    """The reviewable plan of a whole task. Changes and the order name steps as `part/step`."""
    steps = {f"{plan.part_id}/{step.id}": (plan, step) for plan in part_plans for step in plan.steps}
    part_steps = {
        plan.part_id: tuple(f"{plan.part_id}/{step.id}" for step in plan.steps) for plan in part_plans
    }
    parts = {part.id: part.depends_on for part in meta_plan.parts}
    needs = {
        name: tuple(f"{plan.part_id}/{need}" for need in step.depends_on)
        for name, (plan, step) in steps.items()
    }
    order = tuple(
        name
        for part in in_order(parts)
        for name in in_order({step: needs[step] for step in part_steps.get(part, ())})
    )
    depended = {name: tuple(other for other in order if name in needs[other]) for name in order}
    changes: dict[str, list[Change]] = {}
    roles: dict[str, FileRole] = {}
    for name in order:
        _, step = steps[name]
        for target in step.target_files:
            roles[target.path] = _merged_role(roles.get(target.path), target.role)
            symbols = step.target_symbols if len(step.target_files) == 1 and step.target_symbols else ("",)
            changes.setdefault(target.path, []).extend(
                Change(
                    symbol=symbol,
                    action=ACTIONS[target.role],
                    description=step.description,
                    depends_on=needs[name],
                    depended_by=depended[name],
                )
                for symbol in symbols
            )
    return PlanArtifact(
        task_summary=meta_plan.task_summary,
        affected_files=tuple(
            AffectedFile(path=path, role=roles[path], changes=tuple(found)) for path, found in changes.items()
        ),
        execution_order=order,
        rationale=meta_plan.rationale,
        task_id=task_id,
        task=task,
        model=model,
        created_at=created_at,
        meta_plan=meta_plan,
        part_plans=part_plans,
    )


def step_from_artifact(plan: PlanArtifact) -> PlanStep:
    """The one step that does all that the reviewed plan says; its id is `plan`."""
    lines = [plan.task_summary.strip()]
    symbols: list[str] = []
    for file in plan.affected_files:
        lines.append(f"- {file.role} {file.path}")
        for change in file.changes:
            symbols.append(change.symbol)
            subject = f"{change.action} {change.symbol}: " if change.symbol else ""
            lines.append(f"  - {subject}{change.description.strip()}")
    return PlanStep(
        id=SINGLE_ID,
        description="\n".join(dict.fromkeys(line for line in lines if line)),
        target_files=tuple(TargetFile(path=file.path, role=file.role) for file in plan.affected_files),
        target_symbols=tuple(dict.fromkeys(symbol for symbol in symbols if symbol)),
    )


def plan_from_artifact(plan: PlanArtifact) -> PartPlan:
    """The reviewed plan as one part with one step."""
    return PartPlan(
        part_id=SINGLE_ID,
        task_summary=plan.task_summary,
        steps=(step_from_artifact(plan),),
        rationale=plan.rationale,
    )


def load_plan(text: str, source: str) -> PlanArtifact | MetaPlan:
    """The plan in a file's text: a `MetaPlan` where it has `parts`, else a `PlanArtifact`. `source` names the file.

    Raises:
        ArtifactError: not JSON, made by a newer program, or a field is missing or wrong; the message names it.
    """
    try:
        data = json.loads(text.removeprefix("\ufeff"), parse_constant=_no_number, parse_float=_finite)
        json.dumps(data, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as exc:
        raise ArtifactError(f"{source} holds half a character: {exc.object[exc.start]!r}") from exc
    except (ValueError, RecursionError) as exc:
        raise ArtifactError(f"{source} is not valid JSON: {exc}") from exc
    if not isinstance(data, dict):
        raise ArtifactError(
            f"{source}: a plan is a JSON object", hint="write one with `cra plan TASK -o FILE`"
        )
    version = data.get("version", FORMAT_VERSION)
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise ArtifactError(f"{source}: version: {version} is newer than this program's {FORMAT_VERSION}")
    kind = MetaPlan if "parts" in data else PlanArtifact
    try:
        plan = kind.model_validate(data)
    except ValidationError as exc:
        faults = [f"{'.'.join(map(str, error['loc'])) or 'plan'}: {error['msg']}" for error in exc.errors()]
        raise ArtifactError(
            f"{source}: " + "; ".join(faults), hint="mend the field that the message names"
        ) from exc
    if isinstance(plan, MetaPlan):
        found = tuple(f"parts: {fault}" for fault in meta_plan_faults(plan, max_parts=len(plan.parts)))
    else:
        found = artifact_faults(plan)
    if found:
        raise ArtifactError(f"{source}: " + "; ".join(found), hint="mend the field that the message names")
    return plan


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _no_number(digits)


def _settled(
    draft: Callable[[Rejected], Draft[PlanT]],
    faults_of: Callable[[PlanT], tuple[str, ...]],
    rejected: Rejected = Rejected(),  # noqa: B008 - frozen
) -> Planned[PlanT]:
    """The first draft without faults; what is wrong with one goes back once, also that it cannot be read."""
    notes: tuple[str, ...] = ()
    calls: tuple[int, ...] = ()
    for _ in range(MAX_DRAFTS):
        drafted = draft(rejected)
        notes += drafted.notes
        calls += (drafted.call_id,)
        faults = (drafted.fault,) if drafted.value is None else faults_of(drafted.value)
        if not faults:
            return Planned(value=drafted.value, faults=(), notes=notes, call_ids=calls)
        notes += tuple(f"refused: {fault}" for fault in faults)
        rejected = Rejected(text=drafted.text.strip() if drafted.value is not None else "", faults=faults)
    return Planned(value=None, faults=rejected.faults, notes=notes, call_ids=calls)


def _corrected(
    drafted: Draft[PlanT], field: str, steps: tuple[PlanStep, ...], paths: Collection[str]
) -> Draft[PlanT]:
    """The draft with its `steps`, in `field`, as they can only be meant."""
    assert drafted.value is not None
    right, notes = corrected_steps(steps, paths)
    value = drafted.value.model_copy(update={field: right})
    return replace(drafted, value=value, notes=drafted.notes + notes)


def _merged_role(earlier: FileRole | None, later: FileRole) -> FileRole:
    """What the plan as a whole does with a file."""
    if earlier == "create" and later == "modify":
        return "create"
    if earlier == "delete" and later == "create":
        return "modify"
    return later
