"""Trains an adapter on a recorded dataset, under a version number of its own."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from clean_room_agent.app import wiring
from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.progress import Bar
from clean_room_agent.app.prompts import role_of
from clean_room_agent.app.settings import Overrides, load_settings
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import get_dataset, get_training_plan, list_adapters
from clean_room_agent.errors import UsageError
from clean_room_agent.workspace import Workspace, private_folder

if TYPE_CHECKING:
    from clean_room_agent.training.train import Machine, Trained

WORK = ".training"
"""The suffix of a training's folder, which is removed when the adapter is complete."""


def train_adapter(
    workspace: Workspace,
    machine: "Machine",
    dataset: int,
    base: Path,
    place: Path | None,
    more: dict[str, Any],
    *,
    resume: bool,
    bar: Bar,
) -> "Trained":
    """Train an adapter on dataset number `dataset`, and register it. `more`: further arguments of `job_for`.

    Raises:
        UsageError: there is no such dataset.
    """
    from clean_room_agent.training.plan import plan_of
    from clean_room_agent.training.serving import tag_for
    from clean_room_agent.training.train import job_for, train

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
        version = version_of(top, plan.target, _versions(record, plan.target), resume=resume)
        folder = (place or top / f"{plan.target}-v{version}").absolute()
        work = folder.with_name(f"{folder.name}{WORK}")
        return train(
            record,
            row,
            plan,
            job_for(plan, Path(row.dataset_path), base, work, machine, **more),
            folder,
            machine,
            model_tag=tag_for(provider, plan.base_model, plan.target, version),
            resume=resume,
            progress=lambda done, total, loss: bar.show(done, total, f"  loss {loss:.3f}"),
        )


def _versions(record: Record, prompt: str) -> set[int]:
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
