"""Turns parts and steps into plan files, and plan files into the steps that a run follows."""

from clean_room_agent.artifacts.plans import (
    AffectedFile,
    Change,
    ChangeAction,
    FileRole,
    MetaPlan,
    PartPlan,
    PlanArtifact,
    PlanStep,
    TargetFile,
)
from clean_room_agent.execute.plan_validation import in_order

SINGLE_ID = "plan"
"""The name of the only part of a reviewed plan, and of its only step if it is followed as one."""
ACTIONS: dict[FileRole, ChangeAction] = {"modify": "modify", "create": "add", "delete": "delete"}


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
    """The single step that does everything in the reviewed plan; its id is `plan`."""
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
    """The reviewed plan as one part, with its own steps if it says so, otherwise with a single one for everything."""
    return PartPlan(
        part_id=SINGLE_ID,
        task_summary=plan.task_summary,
        steps=_in_one_part(plan) if plan.as_steps else (step_from_artifact(plan),),
        rationale=plan.rationale,
    )


def _merged_role(earlier: FileRole | None, later: FileRole) -> FileRole:
    """What the plan as a whole does with a file."""
    if earlier == "create" and later == "modify":
        return "create"
    if earlier == "delete" and later == "create":
        return "modify"
    return later


def _in_one_part(plan: PlanArtifact) -> tuple[PlanStep, ...]:
    """The steps of all parts in the order in which they are done; if there are several parts, their ids are made
    unique.
    """
    parts = {entry.part_id: entry for entry in plan.part_plans}
    ordered = [
        (part, {step.id: step for step in parts[part].steps})
        for part in in_order({part.id: part.depends_on for part in plan.meta_plan.parts})
    ]
    done = [
        (part, steps[name])
        for part, steps in ordered
        for name in in_order({name: step.depends_on for name, step in steps.items()})
    ]
    if len(ordered) == 1:
        return tuple(step for _, step in done)
    names = {(part, step.id): f"s{number}" for number, (part, step) in enumerate(done, 1)}
    return tuple(
        step.model_copy(
            update={
                "id": names[part, step.id],
                "depends_on": tuple(names[part, need] for need in step.depends_on),
            }
        )
        for part, step in done
    )
