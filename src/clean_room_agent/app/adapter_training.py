"""Trains an adapter on a recorded dataset, and gives it its number."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from clean_room_agent.app import wiring
from clean_room_agent.app.clock import clock_in, utc_now
from clean_room_agent.app.prompts import role_of
from clean_room_agent.app.settings import Overrides, load_settings
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import get_dataset, get_training_plan, list_adapters
from clean_room_agent.errors import UsageError
from clean_room_agent.training.deployment import tag_for
from clean_room_agent.training.train import Machine, Trained, job_for, train
from clean_room_agent.training.train_plan import plan_of
from clean_room_agent.workspace import Workspace, private_folder

WORK = ".training"
"""The suffix of a training's folder, which is removed when the adapter is complete."""


def train_dataset(
    workspace: Workspace,
    machine: Machine,
    dataset: int,
    base: Path,
    place: Path | None,
    job: dict[str, Any],
    *,
    resume: bool,
    progress: Callable[[int, int, str], None],
    version: int | None = None,
) -> Trained:
    """Train an adapter on dataset number `dataset`, and register it. `job`: further arguments of `job_for`; `version`: its number
    among the prompt's adapters, by default the next one.

    Raises:
        UsageError: there is no such dataset.
    """
    wiring.require_record(workspace)
    settings = load_settings(workspace.config, Overrides())
    settings.require("models")
    with Record.open(workspace.repo, clock=utc_now) as record:
        row = record.write(get_dataset, dataset)
        if row is None:
            raise UsageError(
                f"there is no dataset {dataset}", hint="`cra curate-data` makes one and prints its number"
            )
        stored = record.write(get_training_plan, row.training_plan_id)
        assert stored is not None
        plan = plan_of(stored)
        provider = settings.models.for_role(role_of(plan.target) or "reasoning").provider
        top = private_folder(workspace.adapters)
        version = version or version_of(top, plan.target, versions_in(record, plan.target), resume=resume)
        folder = (place or top / f"{plan.target}-v{version}").absolute()
        work = folder.with_name(f"{folder.name}{WORK}")
        return train(
            record,
            row,
            plan,
            job_for(plan, Path(row.dataset_path), base, work, machine, **job),
            folder,
            machine,
            model_tag=tag_for(provider, plan.base_model, plan.target, version),
            resume=resume,
            progress=_with_end(progress),
        )


def _with_end(progress: Callable[[int, int, str], None]) -> Callable[[int, int, float], None]:
    """Tells the loss and, from the second update on, when the last one will be made."""
    began: list[tuple[int, float]] = []

    def tell(done: int, total: int, loss: float) -> None:
        began.append((done, time.monotonic()))
        made, seconds = done - began[0][0], began[-1][1] - began[0][1]
        until = f", until about {clock_in((total - done) * seconds / made)}" if made else ""
        progress(done, total, f"  loss {loss:.3f}{until}")

    return tell


def versions_in(record: Record, prompt: str) -> set[int]:
    """The numbers of the prompt's adapters in the registry."""
    tags = (each.model_tag for each in record.write(list_adapters) if each.stage_name == prompt)
    return {int(number) for tag in tags if (number := tag.rpartition(f"{prompt}-v")[2]).isdecimal()}


def version_of(adapters: Path, prompt: str, taken: set[int], *, resume: bool) -> int:
    """The version number of the prompt's next adapter, above those in the registry (`taken`) and those of the folders below
    `adapters`; or, to resume, that of the first interrupted training, if there is one.
    """
    names = [path.name.removeprefix(f"{prompt}-v") for path in adapters.glob(f"{prompt}-v*")]
    begun = {
        int(name.removesuffix(WORK))
        for name in names
        if name.endswith(WORK) and name[: -len(WORK)].isdecimal()
    }
    if resume and begun:
        return min(begun)
    return 1 + max(taken | begun | {int(name) for name in names if name.isdecimal()}, default=0)
