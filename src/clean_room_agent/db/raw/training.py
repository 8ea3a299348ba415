"""Training: plans, data sets, adapters and their evaluations. Rows are stored by `insert` of their tables."""

from typing import Literal

from msgspec import Struct

from clean_room_agent.db.rows import Connection, Table

Source = Literal["logged", "synthetic"]
Action = Literal["deploy", "retire"]


class TrainingPlanRow(Struct, frozen=True, kw_only=True):
    """One plan; criteria, hyperparameters and targets are JSON text."""

    id: int = 0
    task_id: str
    target_stage: str
    base_model: str
    source: Source
    data_criteria: str
    hyperparameters: str
    improvement_targets: str
    raw_plan: str
    timestamp: str


class DatasetRow(Struct, frozen=True, kw_only=True):
    """One dataset on disk."""

    id: int = 0
    training_plan_id: int
    stage_name: str
    base_model: str
    source: Source
    dataset_path: str
    example_count: int
    positive_count: int
    negative_count: int
    format: str
    timestamp: str


class AdapterRow(Struct, frozen=True, kw_only=True):
    """One trained adapter; `eval_metrics` is JSON text."""

    id: int = 0
    dataset_id: int
    stage_name: str
    base_model: str
    model_tag: str
    training_loss: float | None
    eval_metrics: str = "{}"
    deployed: bool = False
    trained_at: str
    adapter_path: str = ""
    """Its folder."""
    base_digest: str = ""
    """SHA-256 of the weights that it was trained on."""


class EvaluationRow(Struct, frozen=True, kw_only=True):
    """One comparison of an adapter with its base; `metrics` is JSON text."""

    id: int = 0
    task_id: str
    adapter_id: int
    base_tag: str
    example_count: int
    metrics: str
    passed: bool
    timestamp: str


class DeploymentRow(Struct, frozen=True, kw_only=True):
    """One change of the adapter used for a prompt, recorded before the configuration changes; a tag is "" for none."""

    id: int = 0
    adapter_id: int
    evaluation_id: int | None
    stage_name: str
    action: Action
    tag: str
    replaced_tag: str
    reason: str = ""
    timestamp: str


TRAINING_PLANS = Table("training_plans", TrainingPlanRow)
TRAINING_DATASETS = Table("training_datasets", DatasetRow)
ADAPTER_REGISTRY = Table("adapter_registry", AdapterRow)
ADAPTER_EVALUATIONS = Table("adapter_evaluations", EvaluationRow)
ADAPTER_DEPLOYMENTS = Table("adapter_deployments", DeploymentRow)


get_training_plan = TRAINING_PLANS.get
get_adapter = ADAPTER_REGISTRY.get
get_dataset = TRAINING_DATASETS.get


def list_datasets_of_stage(conn: Connection, stage: str, source: Source) -> tuple[DatasetRow, ...]:
    """The datasets for a prompt from one source, by id."""
    tail = "WHERE stage_name = ? AND source = ? ORDER BY id"
    return TRAINING_DATASETS.select(conn, tail, (stage, source))


def list_adapters(conn: Connection) -> tuple[AdapterRow, ...]:
    """Every adapter, by prompt; of one prompt, newest last."""
    return ADAPTER_REGISTRY.select(conn, "ORDER BY stage_name, id")


def list_evaluations(conn: Connection, adapter_id: int) -> tuple[EvaluationRow, ...]:
    """The evaluations of an adapter, by id."""
    return ADAPTER_EVALUATIONS.select(conn, "WHERE adapter_id = ? ORDER BY id", (adapter_id,))


def list_deployments(conn: Connection, stage: str) -> tuple[DeploymentRow, ...]:
    """The announced changes for a prompt, oldest first."""
    return ADAPTER_DEPLOYMENTS.select(conn, "WHERE stage_name = ? ORDER BY id", (stage,))
