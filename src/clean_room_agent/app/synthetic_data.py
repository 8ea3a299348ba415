"""Makes datasets that come from no run: how their pairs are made as configured, and their place in the record. Needs the extra
`data`.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from clean_room_agent.app import wiring
from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.prompts import BY_NAME, PROMPTS
from clean_room_agent.app.settings import Settings
from clean_room_agent.artifacts.names import new_task_id
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import TRAINING_DATASETS, TRAINING_PLANS, DatasetRow
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.training.bootstrap import Assembled, Mined
from clean_room_agent.training.dataset import FORMATS, Card, Written, write_dataset
from clean_room_agent.training.dataset_filters import REPOSITORY_RULE, SPLIT_RULE
from clean_room_agent.training.licences import ALLOWED
from clean_room_agent.training.pairs import Making
from clean_room_agent.training.shards import digest_of
from clean_room_agent.training.train_plan import default_plan, row_of
from clean_room_agent.version import VERSION
from clean_room_agent.workspace import Workspace

GROUPS = {"commit": "commits", "fault": "functions"}
"""What rows of one question come from."""


def making_of(settings: Settings, licences: tuple[str, ...] | None, *, of_faults: bool) -> Making:
    """How pairs are made, as configured; with all permissive licences if none is named, with any for None.

    Raises:
        ConfigError: the configuration names an unknown stage.
    """
    wiring.retrieval_config(settings)  # a stage that there is not is refused before anything is done
    texts = [
        [prompt.name, prompt.title, prompt.system, prompt.template, prompt.schema, prompt.example]
        for prompt in PROMPTS
    ]
    tables = [settings.data.get(name) for name in ("solve", "evidence", "sandbox")] if of_faults else []
    return Making(
        models=settings.models,
        budget=settings.budget,
        stages=settings.stages.names(),
        judgments=settings.judgments,
        conventions=settings.conventions,
        orchestrator=settings.orchestrator,
        edit=settings.edit,
        index=settings.index,
        licences=ALLOWED if licences == () else licences,
        prompts=hashlib.sha256(json.dumps([*texts, VERSION, *tables], sort_keys=True).encode()).hexdigest(),
    )


def record_dataset(
    folder: Path,
    trainer: str,
    assembled: Assembled,
    mined: Mined,
    making: Making,
    settings: Settings,
    workspace: Workspace,
    rule: str = "",
) -> tuple[Written, dict[str, int]]:
    """Write the dataset, and record a plan and a dataset for each prompt; with the datasets' numbers by prompt. `rule`: how the
    rows were split, if not as is usual for what they come from.
    """
    router = ModelRouter(settings.models, settings.budget)
    stages = sorted({entry.row.origin.stage for entry in assembled.entries})
    plans = {stage: default_plan(BY_NAME[stage], router) for stage in stages}
    of_commits = mined.what == "commit"
    criteria: dict[str, Any] = {
        "repositories": sorted({unit.repo for unit in mined.units}),
        "repositories_not_read": dict(sorted(mined.unread)),
        GROUPS[mined.what]: assembled.groups,
        "licences": "any" if making.licences is None else list(making.licences),
        "making": digest_of(making),
    }
    card = Card(
        title="Training pairs from commits" if of_commits else "Training pairs from planted faults",
        base_model=", ".join(sorted({plan.base_model for plan in plans.values()})),
        plan={},
        criteria=criteria,
        split_rule=rule or (SPLIT_RULE if of_commits else REPOSITORY_RULE),
        exclusions=assembled.left_out,
    )
    written = write_dataset(folder, assembled.entries, card, FORMATS[trainer])
    task_id = new_task_id()
    numbers = {}
    with Record.open(workspace.repo, clock=utc_now) as record:
        for stage, plan in plans.items():
            mined_plan = plan.model_copy(
                update={"source": "synthetic", "criteria": plan.criteria.model_copy(update=criteria)}
            )
            kept = row_of(mined_plan, task_id=task_id, raw="", now=record.now())
            count, positive = written.count("sft", stage), assembled.positive.get(stage, 0)
            row = DatasetRow(
                training_plan_id=record.write(TRAINING_PLANS.insert, kept),
                stage_name=stage,
                base_model=plan.base_model,
                source="synthetic",
                dataset_path=str(written.folder),
                example_count=count,
                positive_count=positive,
                negative_count=count - positive,
                format=trainer,
                timestamp=record.now(),
            )
            numbers[stage] = record.write(TRAINING_DATASETS.insert, row)
    return written, numbers
