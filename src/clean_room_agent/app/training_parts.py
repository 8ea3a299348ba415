"""`cra train-plan` and `cra curate-data`: the record and the logs, opened for one task of training."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from clean_room_agent.app import wiring
from clean_room_agent.app.prompts import BY_NAME
from clean_room_agent.app.settings import Overrides, load_settings
from clean_room_agent.artifacts.names import row_number
from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import TRAINING_PLANS, get_training_plan
from clean_room_agent.errors import UsageError
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.training.logs import LogAnalysisAPI
from clean_room_agent.training.training_task import recorded_task
from clean_room_agent.workspace import Workspace

if TYPE_CHECKING:
    from clean_room_agent.training.curate import Curated
    from clean_room_agent.training.plan import TrainingPlan
    from clean_room_agent.training.planning import Planned

TARGETS = tuple(BY_NAME)
"""What adapters can be trained for."""
Progress = Callable[[int, int], None]


@contextlib.contextmanager
def _opened(workspace: Workspace) -> Iterator[tuple[wiring.ModelAccess, LogAnalysisAPI]]:
    """The record, with models that only count tokens, and the logs as they were when the command began.

    Raises:
        UsageError: nothing has been recorded.
        ConfigError: a value is missing.
    """
    wiring.require_record(workspace)
    settings = load_settings(workspace.config, Overrides())
    settings.require("models", "budget")
    reading = get_connection("raw", repo_path=workspace.repo, read_only=True)
    with (
        contextlib.closing(reading) as conn,
        wiring.open_model_access(workspace, settings, wiring.no_transport) as access,
    ):
        yield access, LogAnalysisAPI(conn)


def make_plan(workspace: Workspace, target: str | None, progress: Progress) -> "Planned":
    """Plan the training of an adapter for the prompt, or for the one that would help most.

    Raises:
        UsageError: nothing has been recorded.
    """
    from clean_room_agent.training.planning import make_training_plan

    targets = TARGETS if target is None else (target,)
    with (
        _opened(workspace) as (access, logs),
        recorded_task(access.record, access.router, "train_plan", str(workspace.repo)) as task,
    ):
        return make_training_plan(task, logs, BY_NAME, targets, progress)


def curate_data(
    workspace: Workspace,
    *,
    given: str | None,
    target: str | None,
    folder: Path | None,
    trainer: str,
    progress: Progress,
) -> "tuple[Curated, TrainingPlan, int]":
    """Make a dataset from the record, and store its plan there if it is new: the outcome, the plan and its number.

    `given` is a plan's number in the record, or its file; `target`, instead, a prompt's name. The folder is
    `dataset-TARGET` in the current one by default.

    Raises:
        UsageError: the extra `data` is missing, there is no such plan, or the folder is not free.
    """
    from clean_room_agent.app.package_extras import require_extras

    require_extras("data")
    from clean_room_agent.redaction import Redactor, secret_values
    from clean_room_agent.training.curate import curate
    from clean_room_agent.training.dataset import require_free
    from clean_room_agent.training.dataset_formats import FORMATS
    from clean_room_agent.training.plan import row_of

    with contextlib.ExitStack() as stack:
        access, logs = stack.enter_context(_opened(workspace))
        plan, plan_id = _plan_for(access.record, access.router, given, target)
        prompt = BY_NAME[plan.target]
        place = folder or Path(f"dataset-{plan.target}")
        require_free(place)
        task = stack.enter_context(
            recorded_task(access.record, access.router, "curate_data", str(workspace.repo))
        )
        if not plan_id:
            row = row_of(plan, task_id=task.task_id, raw=plan.model_dump_json(), now=task.record.now())
            plan_id = task.record.write(TRAINING_PLANS.insert, row)
        curated = curate(
            task,
            logs,
            prompt,
            plan,
            plan_id,
            place,
            FORMATS[trainer],
            Redactor(workspace.secret_key, secret_values(os.environ)),
            lambda text: access.models.count(text, prompt.role),
            progress,
        )
    return curated, plan, plan_id


def _plan_for(
    record: Record, router: ModelRouter, given: str | None, target: str | None
) -> "tuple[TrainingPlan, int]":
    """The plan, and its number in the record; 0 if it is not recorded yet.

    Raises:
        UsageError: there is no such plan, or it is for an unknown prompt.
    """
    from clean_room_agent.training.plan import plan_of, read_plan
    from clean_room_agent.training.planning import default_plan

    if given is None:
        return default_plan(BY_NAME[target or ""], router), 0
    if given.isdecimal():
        number = row_number(given)
        known = None if number is None else record.write(get_training_plan, number)
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
