"""`cra train`: train an adapter on a dataset, with TRL in a separate process."""

from pathlib import Path
from typing import Literal

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.adapter_training import train_dataset
from clean_room_agent.artifacts.names import counted
from clean_room_agent.cli import options, output
from clean_room_agent.training.dataset import Kind
from clean_room_agent.training.train import LEAST_AT_ONCE, Machine, native_bfloat16

KIND = "Learn from good answers (sft), from pairs (dpo), or from labelled answers (kto)."


@click.command()
@click.argument("dataset", metavar="DATASET", type=options.number(1))
@click.option(
    "--base",
    required=True,
    type=click.Path(path_type=Path),
    help="The base model's weights: a folder that transformers can load, or a GGUF file.",
)
@click.option("-o", "--output", "place", type=options.OUTPUT_FOLDER, help="The adapter's folder.")
@click.option("--kind", type=click.Choice(["sft", "dpo", "kto"]), default="sft", show_default=True, help=KIND)
@click.option(
    "--max-length", type=options.number(1), help="Maximum tokens of a row; the plan's max_tokens by default."
)
@click.option("--max-steps", type=options.number(1), help="Stop after this many updates.")
@click.option("--micro-batch", type=options.number(1), help="Rows per device at a time. [default: 1; kto: 2]")
@click.option("--checkpointing", is_flag=True, help="Gradient checkpointing: less memory, more time.")
@click.option(
    "--dtype",
    type=click.Choice(["float32", "bfloat16"]),
    help="By default what the processor supports natively.",
)
@click.option("--cpu", is_flag=True, help="Do not use GPUs.")
@click.option("--processes", type=options.number(1), default=1, show_default=True, help="One per GPU.")
@click.option(
    "--accelerate-config",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="A file that `accelerate config` wrote: FSDP, several machines.",
)
@options.python_option
@click.option("--seed", type=options.number(0), default=0, show_default=True)
@click.option("--resume", is_flag=True, help="Continue an interrupted training.")
@options.repo_option
@options.json_option
@options.exact_option
def command(
    dataset: int,
    base: Path,
    place: Path | None,
    kind: Kind,
    max_length: int | None,
    max_steps: int | None,
    micro_batch: int | None,
    checkpointing: bool,
    dtype: Literal["float32", "bfloat16"] | None,
    cpu: bool,
    processes: int,
    accelerate_config: Path | None,
    python: str,
    seed: int,
    resume: bool,
    repo: Path,
    as_json: bool,
) -> int:
    """Train an adapter on DATASET, a number that `cra curate-data` printed.

    Exit codes: 0 trained, 1 the trainer failed, 2 usage, configuration, a row that would be truncated, or the extra `train` is
    missing.
    """
    machine = Machine(
        python=python,
        processes=processes,
        accelerate_config=accelerate_config,
        dtype=dtype or ("bfloat16" if native_bfloat16() else "float32"),
        device="cpu" if cpu else "auto",
        micro_batch=micro_batch or LEAST_AT_ONCE[kind],
        gradient_checkpointing=checkpointing,
    )
    job = {"kind": kind, "max_length": max_length, "max_steps": max_steps or 0, "seed": seed}
    with output.ProgressBar("training") as bar:
        made = train_dataset(
            wiring.workspace_of(repo), machine, dataset, base, place, job, resume=resume, progress=bar.show
        )
    if as_json:
        output.answer_json(made)
        return 0
    output.answer(f"adapter {made.adapter.id}: {made.adapter.model_tag} in {made.folder}")
    loss = "" if made.last_loss is None else f", loss {made.first_loss:.3f} -> {made.last_loss:.3f}"
    output.answer(
        f"  {counted(made.rows, 'row')}, {counted(made.tokens, 'token')}, {counted(made.steps, 'step')}, "
        f"{made.seconds:.0f} s{loss}"
    )
    output.answer(f"next: cra adapters evaluate {made.adapter.id}")
    return 0
