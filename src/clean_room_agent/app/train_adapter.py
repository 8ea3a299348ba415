"""Trains an adapter on a recorded dataset, under a version number that is unique even if several of a prompt are trained
at a time.
"""

import contextlib
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.progress import Bar
from clean_room_agent.app.settings import Settings
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import get_dataset, get_training_plan, list_adapters
from clean_room_agent.errors import RecordError, UsageError
from clean_room_agent.workspace import Workspace, hold, private_folder

if TYPE_CHECKING:
    from clean_room_agent.training.train import Machine, Trained

WORK = ".training"
"""The suffix of a training's folder, which is removed when the adapter is complete."""


def train_adapter(
    workspace: Workspace,
    settings: Settings,
    machine: "Machine",
    dataset: int,
    base: Path,
    place: Path | None,
    more: dict[str, Any],
    *,
    resume: bool,
    bar: Bar,
) -> "Trained":
    """Train an adapter on dataset number `dataset`, and register it.

    Raises:
        UsageError: there is no such dataset.
    """
    from clean_room_agent.app.prompts import role_of
    from clean_room_agent.training.plan import plan_of
    from clean_room_agent.training.serving import tag_for
    from clean_room_agent.training.train import job_for, train

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
        with held_version(top, plan.target, lambda: _versions(record, plan.target)) as version:
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
    from clean_room_agent.training.serving import name_of

    names = (name_of(each) for each in record.write(list_adapters) if each.stage_name == prompt)
    numbers = (name.removeprefix(f"{prompt}-v") for name in names)
    return {int(number) for number in numbers if number.isdecimal()}


def machine_of(
    *,
    python: str | None,
    processes: int,
    accelerate_config: Path | None,
    dtype: str | None,
    cpu: bool,
    micro_batch: int,
    checkpointing: bool,
) -> "Machine":
    """The machine for a training; by default with the dtype that the processor supports natively."""
    import sys

    from clean_room_agent.training.train import Machine, native_bfloat16

    native = dtype or ("bfloat16" if native_bfloat16() else "float32")
    return Machine(
        python=python or sys.executable,
        processes=processes,
        accelerate_config=accelerate_config,
        dtype="bfloat16" if native == "bfloat16" else "float32",
        device="cpu" if cpu else "auto",
        micro_batch=micro_batch,
        gradient_checkpointing=checkpointing,
    )


@contextlib.contextmanager
def held_version(adapters: Path, prompt: str, taken: Callable[[], AbstractSet[int]]) -> Iterator[int]:
    """Reserve a version number for the prompt's next adapter.

    An interrupted training below `adapters` keeps its number and comes first; numbers of running ones are skipped.
    `taken` returns the numbers in the registry, which may grow at any time.
    """
    place = f"{prompt}-v"
    broken_off = sorted(
        int(number) for path in adapters.glob(f"{place}*{WORK}")
        if (number := path.name.removeprefix(place).removesuffix(WORK)).isdecimal()
    )  # fmt: skip
    newer = count(1 + max(taken(), default=0))
    for version in chain(broken_off, newer):
        folder, lock = adapters / f"{place}{version}", adapters / f"{place}{version}.lock"
        begun = folder.with_name(folder.name + WORK).exists()
        if folder.exists() and not begun:
            continue
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(hold(lock, timeout=0))
            except RecordError:
                continue
            stack.callback(lock.unlink)
            if version not in taken():
                yield version
                return
