"""`cra train-plan`: makes a training plan from the record, or says what is missing for one."""

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from clean_room_agent.artifacts.context import ContextItem
from clean_room_agent.artifacts.names import counted
from clean_room_agent.db.raw.training import append_training_plan
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.retrieval.stage import StageContext
from clean_room_agent.training.credit import Waterfall
from clean_room_agent.training.log_analysis_stage import OTHERWISE
from clean_room_agent.training.pipeline import Pipeline
from clean_room_agent.training.plan import (
    MIN_FAILURES,
    VERDICT_RANK,
    DataCriteria,
    Hyperparameters,
    Improvement,
    TrainingPlan,
    examples_to_see,
    row_of,
)
from clean_room_agent.training.prompts import TRAIN_PLAN, TrainPlanAnswer, TrainPlanInputs
from clean_room_agent.training.stage_source import LogSource, TrainingStageConfig

TASK = "Choose the prompt whose adapter would win the most tasks, and plan its training."
TRIES = 2
"""Answers that are asked for; a faulty one is sent back once."""
SIZE = re.compile(r"(\d+(?:\.\d+)?)b\b", re.IGNORECASE)
LARGE = 4.0
"""Billions of parameters from which on the default learning rate is lower."""


class Planned(Struct, frozen=True, kw_only=True):
    """The plan, or why there is none."""

    plan: TrainingPlan | None
    plan_id: int
    """In the record; 0 without a plan."""
    reason: str
    """Why there is no plan; "" if there is one."""
    refused: tuple[tuple[str, str], ...]
    """Each prompt that was not chosen, with the reason; the one with most failures first."""
    waterfall: Waterfall


def make_training_plan(
    pipeline: Pipeline,
    source: LogSource,
    router: ModelRouter,
    *,
    targets: Sequence[str],
    stages: Sequence[str] = ("log_analysis",),
) -> Planned:
    """Make a plan for one of the targets, and store it. The run and its decisions are recorded, even if it refuses.

    Raises:
        ConfigError: a stage is unknown.
        ModelError: the server.
    """
    with pipeline.recorded("train_plan", stages) as outcome:
        context = pipeline.narrow(
            "train_plan", TASK, targets, source, stages=stages, config=TrainingStageConfig()
        )
        waterfall = source.waterfall
        refused = _refused(context, waterfall)
        plan, raw, reason = None, "", why_none(waterfall, refused)
        if context.files:
            plan, raw, reason = _write(pipeline, source, router, pipeline.pack(context).items)
        outcome.detail = reason
        if plan is None:
            return Planned(plan=None, plan_id=0, reason=reason, refused=refused, waterfall=waterfall)
        stored = row_of(plan, task_id=plan.task_id, raw=raw, now=pipeline.record.now())
        plan_id = pipeline.record.write(append_training_plan, stored)
        outcome.success, outcome.plan, outcome.detail = True, plan.model_dump_json(), f"train {plan.target}"
    return Planned(plan=plan, plan_id=plan_id, reason="", refused=refused, waterfall=waterfall)


def _refused(context: StageContext, waterfall: Waterfall) -> tuple[tuple[str, str], ...]:
    """The prompts that no stage chose, with the reasons; those with most failures first."""
    chosen = {entry.path for entry in context.files}
    reasons = {each.subject.path: each.reason for each in context.decisions if not each.included}
    ordered = sorted(reasons, key=lambda name: (-waterfall.by_prompt.get(name, 0), name))
    return tuple((name, reasons[name]) for name in ordered if name not in chosen)


def why_none(waterfall: Waterfall, refused: Sequence[tuple[str, str]]) -> str:
    """In one line, what is missing for a plan."""
    if not waterfall.charges:
        ended = counted(waterfall.tasks, "ended task")
        return f"of {ended} in the record none failed at a prompt: {MIN_FAILURES} are needed for a plan; {OTHERWISE}"
    name, why = refused[0]
    return f"{name}: {why}"


def _write(
    pipeline: Pipeline, source: LogSource, router: ModelRouter, items: Sequence[ContextItem]
) -> tuple[TrainingPlan | None, str, str]:
    """The plan, the text it was made from, and why there is no plan."""
    names = tuple(item.path for item in items)
    tasks = known_tasks(source.waterfall)
    rejected = ""
    faults: tuple[str, ...] = ("no package fits the window",)
    for _ in range(TRIES if names else 0):
        inputs = TrainPlanInputs(
            candidates="\n".join(item.text for item in items),
            names=names,
            tasks=tasks,
            rejected=rejected,
            faults=faults if rejected else (),
        )
        reply = pipeline.models.ask(TRAIN_PLAN, inputs, pass_id=pipeline.session.task_id)
        if reply.value is None:
            return None, "", f"the plan could not be read: {reply.bad.fault if reply.bad else 'no answer'}"
        faults = faults_of(reply.value, names, source.waterfall)
        if not faults:
            return _plan(pipeline, source, router, reply.value), reply.text, ""
        rejected = reply.text
    return None, rejected, f"the plan has faults: {'; '.join(faults)}"


def faults_of(answer: TrainPlanAnswer, names: Sequence[str], waterfall: Waterfall) -> tuple[str, ...]:
    """What is wrong with an answer; empty if it can be followed."""
    if answer.target not in names:
        return (f"target: {answer.target!r} is none of {', '.join(names)}",)
    now = share_past(waterfall, answer.target)
    if not now < answer.expected <= 1:
        return (f"expected: {answer.expected} is not above {now:.3f}, which is the share now",)
    return ()


def known_tasks(waterfall: Waterfall) -> int:
    """Tasks whose outcome says something about prompts: solved ones, and failed ones that can be charged."""
    return waterfall.solved + len(waterfall.charges)


def share_past(waterfall: Waterfall, prompt: str) -> float:
    """The share of those tasks that were not lost at this prompt; 0 if there are none."""
    tasks = known_tasks(waterfall)
    return 1 - waterfall.by_prompt.get(prompt, 0) / tasks if tasks else 0.0


def _plan(
    pipeline: Pipeline, source: LogSource, router: ModelRouter, answer: TrainPlanAnswer
) -> TrainingPlan:
    now = share_past(source.waterfall, answer.target)
    plan = default_plan(source.prompts[answer.target], router)
    return plan.model_copy(
        update={
            "task_id": pipeline.session.task_id,
            "hyperparameters": plan.hyperparameters.model_copy(update={"epochs": answer.epochs}),
            "improvement": Improvement(
                now=now, expected=answer.expected, examples_to_see_it=examples_to_see(now, answer.expected)
            ),
            "rationale": answer.reason,
        }
    )


def default_plan(prompt: Prompt[Any, Any], router: ModelRouter) -> TrainingPlan:
    """The plan for a prompt by rules alone; its base is the model that answers it now."""
    model = router.resolve(prompt.role, prompt.name)
    size = SIZE.search(model.tag)
    large = size is not None and float(size[1]) >= LARGE
    verdict = prompt.answer.wants_logprobs
    return TrainingPlan(
        target=prompt.name,
        base_model=model.tag,
        criteria=DataCriteria(max_tokens=model.window),
        hyperparameters=Hyperparameters(
            rank=VERDICT_RANK if verdict else 16,
            alpha=2 * VERDICT_RANK if verdict else 32,
            learning_rate=1e-4 if large else 2e-4,
        ),
    )
