"""`cra train-plan`: makes a training plan from the record, or says what is missing for one.

The prompt is planned for that most failed tasks are charged to, unless these are too few or retrieval loses as many.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from clean_room_agent.artifacts.names import counted
from clean_room_agent.db.raw.training import TRAINING_PLANS
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.training.credit import STAGES, Waterfall, waterfall_of
from clean_room_agent.training.logs import LogAnalysisAPI
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
from clean_room_agent.training.training_task import TrainingTask

HOPED = 0.5
"""Of the tasks that perfect answers would win, the share that an adapter is expected to."""
SIZE = re.compile(r"(\d+(?:\.\d+)?)b\b", re.IGNORECASE)
LARGE = 4.0
"""Billions of parameters from which on the default learning rate is lower."""
OTHERWISE = "`cra bootstrap` makes examples from other repositories' histories"
Prompts = Mapping[str, Prompt[Any, Any]]


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
    task: TrainingTask,
    logs: LogAnalysisAPI,
    prompts: Prompts,
    targets: Sequence[str],
    progress: Callable[[int, int], None],
) -> Planned:
    """Make a plan for one of the targets, and store it; or say what is missing."""
    waterfall = waterfall_of(logs.watched_tasks(progress))
    ordered = sorted(targets, key=lambda name: (-waterfall.by_prompt.get(name, 0), name))
    reasons = {name: refusal(waterfall, name) for name in ordered}
    refused = tuple((name, reason) for name, reason in reasons.items() if reason)
    target = next((name for name in ordered if not reasons[name]), None)
    if target is None:
        task.detail = why_none(waterfall, refused)
        return Planned(plan=None, plan_id=0, reason=task.detail, refused=refused, waterfall=waterfall)
    plan = _plan_for(task, waterfall, prompts[target])
    row = row_of(plan, task_id=plan.task_id, raw="", now=task.record.now())
    plan_id = task.record.write(TRAINING_PLANS.insert, row)
    task.success, task.plan, task.detail = True, plan.model_dump_json(), f"train {plan.target}"
    return Planned(plan=plan, plan_id=plan_id, reason="", refused=refused, waterfall=waterfall)


def refusal(waterfall: Waterfall, prompt: str) -> str:
    """Why the prompt should not be trained from this record; "" if nothing speaks against it."""
    charged = waterfall.by_prompt.get(prompt, 0)
    if charged < MIN_FAILURES:
        return (
            f"{counted(charged, 'failed task is', 'failed tasks are')} charged to it, {MIN_FAILURES} are needed: "
            f"{MIN_FAILURES - charged} are missing; {OTHERWISE}"
        )
    lost = waterfall.by_stage["retrieval"]
    if lost >= charged:
        return (
            f"retrieval loses {counted(lost, 'task')} and this prompt {charged}: "
            "no adapter finds a file that is not looked at"
        )
    if not _headroom(waterfall, prompt):
        return "other stages lose the same tasks: perfect answers would win none"
    return ""


def _headroom(waterfall: Waterfall, prompt: str) -> float:
    """The tasks that are expected to be won if the stages whose failures are charged to the prompt were perfect."""
    stages = {charge.stage for charge in waterfall.charges if charge.prompt == prompt}
    return max((waterfall.headroom[stage].expected for stage in STAGES if stage in stages), default=0.0)


def why_none(waterfall: Waterfall, refused: Sequence[tuple[str, str]]) -> str:
    """In one line, what is missing for a plan; "" if no prompt was refused."""
    if not waterfall.charges:
        ended = counted(waterfall.tasks, "ended task")
        return f"of {ended} in the record none failed at a prompt: {MIN_FAILURES} are needed for a plan; {OTHERWISE}"
    return ": ".join(refused[0]) if refused else ""


def _plan_for(task: TrainingTask, waterfall: Waterfall, prompt: Prompt[Any, Any]) -> TrainingPlan:
    known, charged = waterfall.solved + len(waterfall.charges), waterfall.by_prompt[prompt.name]
    won = _headroom(waterfall, prompt.name)
    now = 1 - charged / known
    expected = min(1.0, now + HOPED * won / known)
    return default_plan(prompt, task.router).model_copy(
        update={
            "task_id": task.task_id,
            "improvement": Improvement(
                now=now, expected=expected, examples_to_see_it=examples_to_see(now, expected)
            ),
            "rationale": f"{counted(charged, 'failed task')} of {len(waterfall.charges)} charged to it; perfect answers "
            f"would win {won:.0f}",
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
