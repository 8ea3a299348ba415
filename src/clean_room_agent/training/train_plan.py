"""The training plan, a versioned file: what to train, on which rows, and what that should gain.

`cra train-plan` makes one from the record, or says what is missing for one: for the prompt that most failed tasks are
charged to, unless these are too few or retrieval loses as many.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clean_room_agent.artifacts.names import counted
from clean_room_agent.db.raw.training import Source, TrainingPlanRow
from clean_room_agent.errors import ArtifactError
from clean_room_agent.file_contents import read_given
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.training.credit import STAGES, Waterfall, waterfall_of
from clean_room_agent.training.logs import LogAnalysisAPI
from clean_room_agent.training.statistics import examples_to_see

FORMAT_VERSION = 1
MIN_FAILURES = 200
"""Failed tasks charged to a prompt that are needed to learn from the record."""
VERDICT_RANK = 8
HOPED = 0.5
"""Of the tasks that perfect answers would win, the share that an adapter is expected to."""
SIZE = re.compile(r"(\d+(?:\.\d+)?)b\b", re.IGNORECASE)
LARGE = 4.0
"""Billions of parameters from which on the default learning rate is lower."""
OTHERWISE = "`cra bootstrap` makes examples from other repositories' histories"


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)


class DataCriteria(_Part):
    """Which rows are taken."""

    max_tokens: int = Field(
        default=4096, ge=1, description="prompt and answer; longer rows are left out, never cut"
    )
    max_per_task: int = Field(default=8, ge=1)
    max_per_repository: int = Field(default=5000, ge=1)
    max_ratio: float = Field(
        default=3.0, ge=1, description="rows of the commonest answer for one of the rarest"
    )
    near_duplicate: float = Field(
        default=0.7, gt=0, le=1, description="Jaccard index from which rows count as duplicates"
    )
    synthetic_weight: float = Field(default=0.0, ge=0, description="bootstrapped rows for each logged one")


class Hyperparameters(_Part):
    """How the adapter is trained."""

    rank: int = Field(default=16, ge=1, le=256)
    alpha: int = Field(default=32, ge=1)
    learning_rate: float = Field(default=2e-4, gt=0, lt=0.1)
    epochs: float = Field(default=2.0, gt=0, le=20)
    batch_size: int = Field(default=16, ge=1)
    warmup_share: float = Field(default=0.03, ge=0, lt=1)


class Improvement(_Part):
    """What the adapter should gain, as a share of the tasks that get past its prompt."""

    metric: str = "tasks not lost at this prompt"
    now: float = Field(default=0.0, ge=0, le=1)
    expected: float = Field(default=0.0, ge=0, le=1)
    examples_to_see_it: int = Field(default=0, ge=0)
    """Held-out examples for a two-sided test at 5 % with a power of 80 %."""


class TrainingPlan(_Part):
    """The plan that `cra train-plan` writes, and that `cra curate-data` and `cra train` follow."""

    version: int = FORMAT_VERSION
    task_id: str = ""
    target: str
    """The prompt."""
    base_model: str
    source: Source = "logged"
    criteria: DataCriteria = DataCriteria()
    hyperparameters: Hyperparameters = Hyperparameters()
    improvement: Improvement = Improvement()
    rationale: str = ""


def row_of(plan: TrainingPlan, *, task_id: str, raw: str, now: str) -> TrainingPlanRow:
    """The plan as the record keeps it; `raw` is the text that it was made from."""
    return TrainingPlanRow(
        task_id=task_id,
        target_stage=plan.target,
        base_model=plan.base_model,
        source=plan.source,
        data_criteria=plan.criteria.model_dump_json(),
        hyperparameters=plan.hyperparameters.model_dump_json(),
        improvement_targets=plan.improvement.model_dump_json(),
        raw_plan=raw,
        timestamp=now,
    )


def plan_of(row: TrainingPlanRow) -> TrainingPlan:
    """The plan that the record keeps."""
    value: dict[str, Any] = {
        "task_id": row.task_id,
        "target": row.target_stage,
        "base_model": row.base_model,
        "source": row.source,
        "criteria": json.loads(row.data_criteria),
        "hyperparameters": json.loads(row.hyperparameters),
        "improvement": json.loads(row.improvement_targets),
    }
    return _validated_plan(value, f"training plan {row.id}")


def read_plan(path: Path) -> TrainingPlan:
    """The plan in a file.

    Raises:
        UsageError: it cannot be read.
        ArtifactError: a field is missing or wrong; the message names it.
    """
    text = read_given(path)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise ArtifactError(
            f"{path} is not a training plan: {exc}", hint="`cra train-plan -o FILE` writes one"
        ) from exc
    return _validated_plan(value, str(path))


def _validated_plan(value: object, where: str) -> TrainingPlan:
    try:
        plan = TrainingPlan.model_validate(value)
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise ArtifactError(
            f"{where}: {field}: {first['msg']}", hint="`cra train-plan -o FILE` writes a complete one"
        ) from exc
    if plan.version > FORMAT_VERSION:
        raise ArtifactError(f"{where} was written by a newer program (version {plan.version})")
    return plan


class PlanOrRefusal(Struct, frozen=True, kw_only=True):
    """The plan, or why there is none."""

    plan: TrainingPlan | None
    reason: str
    """Why there is no plan; "" if there is one."""
    refused: tuple[tuple[str, str], ...]
    """Each prompt that was not chosen, with the reason; the one with most failures first."""
    waterfall: Waterfall


def make_training_plan(
    logs: LogAnalysisAPI,
    prompts: Mapping[str, Prompt[Any, Any]],
    targets: Sequence[str],
    router: ModelRouter,
    progress: Callable[[int, int], None],
    *,
    task_id: str,
) -> PlanOrRefusal:
    """Make a plan for one of the targets, or say what is missing. `task_id` is the task that the plan is made in."""
    waterfall = waterfall_of(logs.watched_tasks(progress))
    ordered = sorted(targets, key=lambda name: (-waterfall.by_prompt.get(name, 0), name))
    reasons = {name: refusal(waterfall, name) for name in ordered}
    refused = tuple((name, reason) for name, reason in reasons.items() if reason)
    target = next((name for name in ordered if not reasons[name]), None)
    if target is None:
        return PlanOrRefusal(
            plan=None, reason=_why_none(waterfall, refused), refused=refused, waterfall=waterfall
        )
    plan = _plan_for(waterfall, prompts[target], router, task_id)
    return PlanOrRefusal(plan=plan, reason="", refused=refused, waterfall=waterfall)


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
    if not _prompt_headroom(waterfall, prompt):
        return "other stages lose the same tasks: perfect answers would win none"
    return ""


def _prompt_headroom(waterfall: Waterfall, prompt: str) -> float:
    """The tasks that are expected to be won if the stages whose failures are charged to the prompt were perfect."""
    stages = {charge.stage for charge in waterfall.charges if charge.prompt == prompt}
    return max((waterfall.headroom[stage].expected for stage in STAGES if stage in stages), default=0.0)


def _why_none(waterfall: Waterfall, refused: Sequence[tuple[str, str]]) -> str:
    """In one line, what is missing for a plan; "" if no prompt was refused."""
    if not waterfall.charges:
        ended = counted(waterfall.tasks, "ended task")
        return f"of {ended} in the record none failed at a prompt: {MIN_FAILURES} are needed for a plan; {OTHERWISE}"
    return ": ".join(refused[0]) if refused else ""


def _plan_for(
    waterfall: Waterfall, prompt: Prompt[Any, Any], router: ModelRouter, task_id: str
) -> TrainingPlan:
    known, charged = waterfall.solved + len(waterfall.charges), waterfall.by_prompt[prompt.name]
    won = _prompt_headroom(waterfall, prompt.name)
    now = 1 - charged / known
    expected = min(1.0, now + HOPED * won / known)
    return default_plan(prompt, router).model_copy(
        update={
            "task_id": task_id,
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
