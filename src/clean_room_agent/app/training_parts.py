"""What `cra train-plan` and `cra curate-data` need to read runs, and making a dataset from them."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from clean_room_agent.app import wiring
from clean_room_agent.app.prompts import PROMPTS
from clean_room_agent.app.settings import Settings
from clean_room_agent.artifacts.names import new_task_id, row_number
from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.raw.training import append_training_plan, get_training_plan
from clean_room_agent.errors import ConfigError, UsageError
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.retrieval.config import split_stages
from clean_room_agent.retrieval.stage import DecisionLog
from clean_room_agent.training.logs import LogAnalysisAPI
from clean_room_agent.training.pipeline import Pipeline
from clean_room_agent.training.stage_source import LogSource
from clean_room_agent.workspace import Workspace

if TYPE_CHECKING:
    from clean_room_agent.training.curate import Curated
    from clean_room_agent.training.plan import TrainingPlan

TRAINING_PROMPTS = frozenset({"target_judgment", "train_plan", "curate_data"})
TARGETS = tuple(prompt.name for prompt in PROMPTS if prompt.name not in TRAINING_PROMPTS)
"""What adapters can be trained for."""
NEEDED = ("models", "budget")


class TrainingParts(Struct, frozen=True, kw_only=True):
    """The record, a model and the logs, open for both commands."""

    pipeline: Pipeline
    source: LogSource
    router: ModelRouter


@contextlib.contextmanager
def training_parts(
    workspace: Workspace,
    settings: Settings,
    progress: Callable[[int, int], None],
) -> Iterator[TrainingParts]:
    """The parts, over the record as it was when the command began, without the command's own calls.

    Raises:
        UsageError: nothing has been recorded.
        ConfigError: a value is missing.
    """
    wiring.require_record(workspace)
    settings.require(*NEEDED)
    task_id = new_task_id()
    with contextlib.ExitStack() as stack:
        services = stack.enter_context(wiring.open_services(workspace, settings, task_id, wiring.LaterServer))
        reading = get_connection("raw", repo_path=workspace.repo, read_only=True)
        conn = stack.enter_context(contextlib.closing(reading))
        yield TrainingParts(
            pipeline=Pipeline(
                decisions=DecisionLog(services.record),
                record=services.record,
                session=services.session,
                models=services.models,
                meter=services.meter,
                repo_path=str(workspace.repo),
                reader=services.router.resolve("reasoning", "train_plan").tag,
                threshold=settings.judgments.threshold,
            ),
            source=LogSource(
                logs=LogAnalysisAPI(conn),
                prompts={prompt.name: prompt for prompt in PROMPTS},
                progress=progress,
            ),
            router=services.router,
        )


def stage_names(given: str | None, default: str) -> tuple[str, ...]:
    """The stages of a command; by default a single one.

    Raises:
        ConfigError: one of them does not exist.
    """
    from clean_room_agent.training.pipeline import TRAINING_STAGES

    names = split_stages(default if given is None else given)
    unknown = [name for name in names if name not in TRAINING_STAGES]
    if unknown or not names:
        shown = f"unknown stage {unknown[0]!r}" if unknown else "no stage is named"
        raise ConfigError(shown, hint=f"stages: {', '.join(TRAINING_STAGES)}")
    return names


def plan_for(parts: TrainingParts, given: str | None, target: str | None) -> tuple["TrainingPlan", int]:
    """The plan, and its number in the record; 0 if it is not recorded yet.

    Raises:
        UsageError: there is no such plan, or it is for an unknown prompt.
    """
    from clean_room_agent.training.plan import plan_of, read_plan
    from clean_room_agent.training.planning import default_plan

    if given is None:
        assert target is not None
        return default_plan(parts.source.prompts[target], parts.router), 0
    if given.isdecimal():
        number = row_number(given)
        known = None if number is None else parts.pipeline.record.write(get_training_plan, number)
        if known is None:
            raise UsageError(
                f"there is no training plan {given}", hint="`cra train-plan` makes one and prints its number"
            )
        return plan_of(known), known.id
    plan = read_plan(Path(given))
    if plan.target not in TARGETS:
        raise UsageError(
            f"{given}: target: no prompt is called {plan.target!r}", hint=f"prompts: {', '.join(TARGETS)}"
        )
    return plan, 0


def store_plan(parts: TrainingParts, plan: "TrainingPlan") -> int:
    """Store the plan in the record, and return its number."""
    from clean_room_agent.training.plan import row_of

    pipeline = parts.pipeline
    row = row_of(
        plan, task_id=pipeline.session.task_id, raw=plan.model_dump_json(), now=pipeline.record.now()
    )
    return pipeline.record.write(append_training_plan, row)


class CurationRequest(Struct, frozen=True, kw_only=True):
    """Which dataset is wanted, and where."""

    plan: str | None
    """A plan's number in the record, or its file."""
    target: str | None
    """Instead of a plan: a prompt's name."""
    folder: Path | None
    """None: `dataset-TARGET` in the current folder."""
    trainer: str
    """The trainer whose format is written."""
    stages: str | None


class CuratedData(Struct, frozen=True, kw_only=True):
    """The result of a request."""

    curated: "Curated"
    target: str
    plan_id: int


def curate_data(
    workspace: Workspace, settings: Settings, request: CurationRequest, progress: Callable[[int, int], None]
) -> CuratedData:
    """Make a dataset from the record, and store its plan there if it is new.

    Raises:
        UsageError: the extra `data` is missing, there is no such plan, or the folder is not free.
    """
    from clean_room_agent.app.package_extras import require_extras

    require_extras("data")
    from clean_room_agent.redaction import Redactor, secret_values
    from clean_room_agent.training.curate import curate
    from clean_room_agent.training.dataset import require_free
    from clean_room_agent.training.dataset_formats import FORMATS

    names = stage_names(request.stages, "data_selection")
    with training_parts(workspace, settings, progress) as parts:
        plan, plan_id = plan_for(parts, request.plan, request.target)
        folder = request.folder or Path(f"dataset-{plan.target}")
        require_free(folder)
        plan_id = plan_id or store_plan(parts, plan)
        role = parts.source.prompts[plan.target].role
        curated = curate(
            parts.pipeline,
            parts.source,
            plan,
            plan_id,
            folder,
            FORMATS[request.trainer],
            redactor=Redactor(workspace.secret_key, secret_values(os.environ)),
            count=lambda text: parts.pipeline.models.count(text, role),
            stages=names,
        )
    return CuratedData(curated=curated, target=plan.target, plan_id=plan_id)
