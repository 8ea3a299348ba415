"""`cra train`: an adapter from a dataset, by TRL in a process of its own."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clean_room_agent.cli import options, output, wiring
from clean_room_agent.cli.clock import utc_now
from clean_room_agent.cli.settings import Overrides, Settings, load_settings
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import get_dataset, get_training_plan, list_adapters
from clean_room_agent.errors import UsageError
from clean_room_agent.workspace import Workspace, private_folder

if TYPE_CHECKING:
    from clean_room_agent.training.dataset import Kind
    from clean_room_agent.training.train import Machine, Trained


@click.command()
@click.argument("dataset", metavar="DATASET", type=int)
@click.option(
    "--base",
    required=True,
    type=click.Path(path_type=Path),
    help="The base's weights: a folder that transformers can load, or a GGUF file.",
)
@click.option("-o", "--output", "place", type=click.Path(path_type=Path), help="The adapter's folder.")
@click.option(
    "--kind",
    type=click.Choice(["sft", "dpo", "kto"]),
    default="sft",
    show_default=True,
    help="Good answers, pairs, or labelled answers.",
)
@click.option(
    "--max-length", type=click.IntRange(min=1), help="Tokens of a row; by default the plan's max_tokens."
)
@click.option("--max-steps", type=click.IntRange(min=1), help="End after so many updates.")
@click.option(
    "--micro-batch", type=click.IntRange(min=1), default=1, show_default=True, help="Rows at a time."
)
@click.option("--checkpointing", is_flag=True, help="Less memory, more time.")
@click.option(
    "--dtype",
    type=click.Choice(["float32", "bfloat16"]),
    help="By default what the processor computes itself.",
)
@click.option("--cpu", is_flag=True, help="Leave GPUs alone.")
@click.option("--processes", type=click.IntRange(min=1), default=1, show_default=True, help="One a GPU.")
@click.option(
    "--accelerate-config",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="As `accelerate config` writes it: FSDP, several machines.",
)
@click.option("--python", help="A Python that has the extra `train`; by default this one.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--resume", is_flag=True, help="Go on with a training that was broken off.")
@options.repo_option
@options.json_option
@options.notify_option
@options.exact_option
def command(
    dataset: int,
    base: Path,
    place: Path | None,
    kind: str,
    max_length: int | None,
    max_steps: int | None,
    micro_batch: int,
    checkpointing: bool,
    dtype: str | None,
    cpu: bool,
    processes: int,
    accelerate_config: Path | None,
    python: str | None,
    seed: int,
    resume: bool,
    repo: Path,
    as_json: bool,
) -> int:
    """Train an adapter on DATASET, the number that `cra curate-data` told.

    Ends with 0 and the adapter's number; 1: the trainer failed; 2: the command, the configuration, a row that would be cut,
    or the extra `train` is missing.
    """
    workspace = wiring.workspace_of(repo)
    options.require_record(workspace)
    settings = load_settings(workspace.config, Overrides())
    settings.require("models")
    machine = _machine(
        python=python,
        processes=processes,
        accelerate_config=accelerate_config,
        dtype=dtype,
        cpu=cpu,
        micro_batch=micro_batch,
        checkpointing=checkpointing,
    )
    chosen: Kind = "dpo" if kind == "dpo" else "kto" if kind == "kto" else "sft"
    more = {"kind": chosen, "max_length": max_length, "max_steps": max_steps or 0, "seed": seed}
    made = _train(workspace, settings, machine, dataset, base, place, more, resume=resume)
    _show(made, as_json=as_json)
    return 0


def _train(
    workspace: Workspace,
    settings: Settings,
    machine: "Machine",
    dataset: int,
    base: Path,
    place: Path | None,
    more: dict[str, Any],
    *,
    resume: bool,
) -> "Trained":
    from clean_room_agent.training.plan import plan_of
    from clean_room_agent.training.serving import tag_for
    from clean_room_agent.training.train import job_for, train
    from clean_room_agent.training.versions import WORK, held_version

    with Record.open(workspace.repo, clock=utc_now) as record:
        row = record.write(get_dataset, dataset)
        if row is None:
            raise UsageError(
                f"there is no dataset {dataset}", hint="`cra curate-data` makes one and tells its number"
            )
        stored = record.write(get_training_plan, row.training_plan_id)
        assert stored is not None
        plan = plan_of(stored)
        top = private_folder(workspace.adapters)
        with held_version(top, plan.target, lambda: _versions(record, plan.target)) as version:
            folder = (place or top / f"{plan.target}-v{version}").absolute()
            work = folder.with_name(f"{folder.name}{WORK}")
            bar = output.ProgressBar("training")
            try:
                return train(
                    record,
                    row,
                    plan,
                    job_for(plan, Path(row.dataset_path), base, work, machine, **more),
                    folder,
                    machine,
                    model_tag=tag_for(settings.models.provider, plan.base_model, plan.target, version),
                    resume=resume,
                    progress=lambda done, total, loss: bar.show(done, total, f"  loss {loss:.3f}"),
                )
            finally:
                bar.close()


def _versions(record: Record, prompt: str) -> set[int]:
    """The numbers of the prompt's adapters in the registry."""
    from clean_room_agent.training.serving import name_of

    names = (name_of(each) for each in record.write(list_adapters) if each.stage_name == prompt)
    numbers = (name.removeprefix(f"{prompt}-v") for name in names)
    return {int(number) for number in numbers if number.isdecimal()}


def _machine(
    *,
    python: str | None,
    processes: int,
    accelerate_config: Path | None,
    dtype: str | None,
    cpu: bool,
    micro_batch: int,
    checkpointing: bool,
) -> "Machine":
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


def _show(made: "Trained", *, as_json: bool) -> None:
    if as_json:
        output.answer_json(made)
        return
    output.answer(f"adapter {made.adapter.id}: {made.adapter.model_tag} in {made.folder}")
    loss = "" if made.last_loss is None else f", loss {made.first_loss:.3f} -> {made.last_loss:.3f}"
    output.answer(
        f"  {made.rows:,} rows, {made.tokens:,} tokens, {made.steps} steps, {made.seconds:.0f} s{loss}"
    )
    output.answer(f"next: cra adapters evaluate {made.adapter.id}")
