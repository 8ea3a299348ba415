"""Plans in one call: the model is asked for a complete plan."""

from collections.abc import Sequence

from msgspec.structs import replace

from clean_room_agent.artifacts.context import ContextPackage, section_texts
from clean_room_agent.artifacts.evidence import Evidence
from clean_room_agent.artifacts.names import is_plan_id
from clean_room_agent.artifacts.plans import MetaPlan, Part, PartPlan, PlanAdjustment, PlanStep, TargetFile
from clean_room_agent.execute.plan_drafts import (
    Draft,
    Rejected,
    StepOutcome,
    left_out,
    paths_shown,
    sampling_after,
    shown_evidence,
    steps_as_json,
    unreadable_draft,
)
from clean_room_agent.execute.plan_prompts import (
    ADJUSTMENT,
    META_PLAN,
    PART_PLAN,
    AdjustmentInputs,
    MetaPlanInputs,
    PartPlanInputs,
    StepAnswer,
)
from clean_room_agent.execute.prompt_fitting import PromptContents, all_contents, fit, planner_contents
from clean_room_agent.llm.client import ModelClient


def draft_meta_plan(
    models: ModelClient,
    package: ContextPackage,
    evidence: Evidence,
    rejected: Rejected,
    *,
    pass_id: str,
    max_parts: int,
) -> Draft[MetaPlan]:
    """The task in parts, as the model answers."""

    def build(carried: PromptContents) -> MetaPlanInputs:
        return MetaPlanInputs(
            context=carried.sections,
            others=carried.others,
            evidence=shown_evidence(models, evidence),
            max_parts=max_parts,
            task=package.task,
            rejected=carried.rejected,
            faults=rejected.faults,
            paths=paths_shown(package),
        )

    carried = planner_contents(package, rejected=rejected.text)
    fitted = fit(models, META_PLAN, build, carried, answer_tokens=META_PLAN.max_answer_tokens)
    reply = models.ask(META_PLAN, fitted.inputs, pass_id=pass_id, sampling=sampling_after(models, rejected))
    notes = left_out(fitted.dropped)
    if reply.value is None:
        return unreadable_draft(reply, notes)
    names, renamed = _renamed([part.id for part in reply.value.parts], "p")
    parts = tuple(
        Part(
            id=name,
            description=part.description.strip(),
            affected_files=tuple(dict.fromkeys(part.files)),
            depends_on=_needs(part.needs, renamed),
        )
        for name, part in zip(names, reply.value.parts, strict=True)
    )
    plan = MetaPlan(task_summary=reply.value.summary, parts=parts, rationale=reply.value.analysis)
    return Draft(
        value=plan, text=reply.text, fault="", notes=notes + renamed_notes(renamed), call_ids=(reply.call_id,)
    )


def meta_plan_tokens(models: ModelClient, task: str, evidence: Evidence) -> int:
    """Tokens that the prompt of `draft_meta_plan` and its answer need besides code, paths and an earlier draft."""
    inputs = MetaPlanInputs(
        context=section_texts(()),
        others=(),
        evidence=shown_evidence(models, evidence),
        max_parts=1,
        task=task,
        rejected="",
        faults=(),
    )
    return models.measure(META_PLAN, inputs) + META_PLAN.max_answer_tokens


def part_plan_tokens(
    models: ModelClient, task: str, part: Part, *, goal: str, evidence: Evidence, rejected: Rejected
) -> int:
    """Tokens that the prompt of `draft_part_plan` and its answer need besides code, paths and diff."""
    inputs = _part_inputs(
        PromptContents(rejected=rejected.text),
        part,
        task=task,
        goal=goal,
        evidence=shown_evidence(models, evidence),
        faults=rejected.faults,
        max_steps=1,
        max_lines=1,
    )
    return models.measure(PART_PLAN, inputs) + PART_PLAN.max_answer_tokens


def draft_part_plan(
    models: ModelClient,
    package: ContextPackage,
    part: Part,
    *,
    goal: str,
    evidence: Evidence,
    rejected: Rejected,
    pass_id: str,
    diff: str,
    max_steps: int,
    max_lines: int,
) -> Draft[PartPlan]:
    """A part in steps, as the model answers."""

    def build(carried: PromptContents) -> PartPlanInputs:
        inputs = _part_inputs(
            carried,
            part,
            task=package.task,
            goal=goal,
            evidence=shown_evidence(models, evidence),
            faults=rejected.faults,
            max_steps=max_steps,
            max_lines=max_lines,
        )
        return replace(inputs, paths=(*part.affected_files, *paths_shown(package)))

    fitted = fit(
        models,
        PART_PLAN,
        build,
        planner_contents(package, diff, rejected.text),
        answer_tokens=PART_PLAN.max_answer_tokens,
    )
    reply = models.ask(PART_PLAN, fitted.inputs, pass_id=pass_id, sampling=sampling_after(models, rejected))
    notes = left_out(fitted.dropped)
    if reply.value is None:
        return unreadable_draft(reply, notes)
    steps, renamed = steps_from(reply.value.steps)
    plan = PartPlan(
        part_id=part.id, task_summary=reply.value.summary, steps=steps, rationale=reply.value.analysis
    )
    return Draft(
        value=plan, text=reply.text, fault="", notes=notes + renamed_notes(renamed), call_ids=(reply.call_id,)
    )


def _part_inputs(
    carried: PromptContents,
    part: Part,
    *,
    task: str,
    goal: str,
    evidence: str,
    faults: tuple[str, ...],
    max_steps: int,
    max_lines: int,
) -> PartPlanInputs:
    return PartPlanInputs(
        context=carried.sections,
        others=carried.others,
        diff=carried.diff,
        evidence=evidence,
        task=task,
        goal=goal,
        part=part.description,
        files=part.affected_files,
        max_steps=max_steps,
        max_lines=max_lines,
        rejected=carried.rejected,
        faults=faults,
    )


def draft_adjustment(
    models: ModelClient,
    package: ContextPackage | None,
    part: Part,
    remaining: tuple[PlanStep, ...],
    outcomes: tuple[StepOutcome, ...],
    *,
    rejected: Rejected,
    task: str,
    pass_id: str,
    diff: str,
    max_steps: int,
) -> Draft[PlanAdjustment]:
    """What remains of a part, as the model answers."""

    def build(carried: PromptContents) -> AdjustmentInputs:
        return AdjustmentInputs(
            context=carried.sections,
            diff=carried.diff,
            task=task,
            part=part.description,
            done=tuple(map(describe_outcome, outcomes)),
            remaining=steps_as_json(remaining),
            max_steps=max_steps,
            rejected=carried.rejected,
            faults=rejected.faults,
        )

    carried = all_contents(package, diff, rejected=rejected.text)
    fitted = fit(models, ADJUSTMENT, build, carried, answer_tokens=ADJUSTMENT.max_answer_tokens)
    reply = models.ask(ADJUSTMENT, fitted.inputs, pass_id=pass_id, sampling=sampling_after(models, rejected))
    notes = left_out(fitted.dropped)
    if reply.value is None:
        return unreadable_draft(reply, notes)
    steps, renamed = steps_from(reply.value.steps)
    done = {outcome.step.id: outcome.step for outcome in outcomes if outcome.succeeded}
    repeated = tuple(step.id for step in steps if step.id in done and _same(step, done[step.id]))
    plan = PlanAdjustment(
        revised_steps=tuple(step for step in steps if step.id not in repeated),
        rationale=reply.value.analysis,
        changes_made=reply.value.changes,
    )
    notes += renamed_notes(renamed) + tuple(
        f"left out again: step {name}, which is done" for name in repeated
    )
    return Draft(value=plan, text=reply.text, fault="", notes=notes, call_ids=(reply.call_id,))


def steps_from(answers: Sequence[StepAnswer]) -> tuple[tuple[PlanStep, ...], dict[str, str]]:
    """The steps as answered, and a map of renamed ids."""
    names, renamed = _renamed([step.id for step in answers], "s")
    steps = tuple(
        PlanStep(
            id=name,
            description=step.description.strip(),
            target_files=tuple(
                dict.fromkeys(TargetFile(path=file.path, role=file.role) for file in step.files)
            ),
            target_symbols=tuple(dict.fromkeys(symbol.strip() for symbol in step.symbols if symbol.strip())),
            depends_on=_needs(step.needs, renamed),
        )
        for name, step in zip(names, answers, strict=True)
    )
    return steps, renamed


def _renamed(ids: list[str], prefix: str) -> tuple[list[str], dict[str, str]]:
    """Names that are allowed in a pass id, and a map of those that had to be replaced."""
    taken = {name for name in ids if is_plan_id(name)}
    renamed: dict[str, str] = {}
    for number, name in enumerate(ids, 1):
        if is_plan_id(name) or name in renamed:
            continue
        fresh = f"{prefix}{number}"
        while fresh in taken:
            fresh = f"{fresh}x"
        taken.add(fresh)
        renamed[name] = fresh
    return [renamed.get(name, name) for name in ids], renamed


def _needs(names: Sequence[str], renamed: dict[str, str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(renamed.get(name, name) for name in names))


def describe_outcome(outcome: StepOutcome) -> str:
    """The outcome of a step, in one line."""
    verdict = "done" if outcome.succeeded else "failed"
    detail = f" ({outcome.detail})" if outcome.detail else ""
    return f"- {outcome.step.id}, {verdict}: {outcome.step.description}{detail}"


def _same(step: PlanStep, other: PlanStep) -> bool:
    return step.description == other.description and step.target_files == other.target_files


def renamed_notes(renamed: dict[str, str]) -> tuple[str, ...]:
    """A note on each id that was replaced."""
    return tuple(f"id {old!r} became {new}" for old, new in renamed.items())
