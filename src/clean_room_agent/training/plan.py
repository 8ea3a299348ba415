"""The training plan, a versioned file: what to train, on which rows, and what that should gain."""

import json
import math
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clean_room_agent.db.raw.training import Source, TrainingPlanRow
from clean_room_agent.errors import ArtifactError
from clean_room_agent.file_contents import read_given

FORMAT_VERSION = 1
MIN_FAILURES = 200
"""Failed tasks charged to a prompt that are needed to learn from the record."""
VERDICT_RANK = 8
Z_LEVEL = 1.959964
"""Of a two-sided test at 5 %."""
Z_POWER = 0.841621
"""For a power of 80 %."""


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


def examples_to_see(now: float, expected: float) -> int:
    """Examples that are needed to tell two shares apart (two-sided 5 %, power 80 %); 0 if no gain is expected.

    By the normal approximation for independent samples: an upper bound for answers to the same examples.
    """
    if expected <= now:
        return 0
    mean = (now + expected) / 2
    spread = Z_LEVEL * math.sqrt(2 * mean * (1 - mean))
    spread += Z_POWER * math.sqrt(now * (1 - now) + expected * (1 - expected))
    return math.ceil((spread / (expected - now)) ** 2)


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
    return _validated(value, f"training plan {row.id}")


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
    return _validated(value, str(path))


def _validated(value: object, where: str) -> TrainingPlan:
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
