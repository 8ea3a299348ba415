"""`cra adapters`: evaluate, deploy, list and retire trained adapters."""

from pathlib import Path

import click

from clean_room_agent.app import adapters
from clean_room_agent.cli import options, output
from clean_room_agent.cli.views.adapters import list_rows, tell, tell_evaluation
from clean_room_agent.db.raw.training import (
    list_adapters,
    list_evaluations,
)
from clean_room_agent.errors import UsageError

adapter_argument = click.argument("adapter", type=options.ADAPTER, metavar="ADAPTER")
also_option = click.option(
    "--also",
    multiple=True,
    type=options.PROMPT,
    metavar="PROMPT",
    help="Another prompt that the adapter is to answer, and must not be worse at; several times. Those that the "
    "configuration gives it are always asked.",
)
dataset_option = click.option(
    "--dataset",
    type=click.Path(path_type=Path, file_okay=False),
    help="The dataset with the held-out split; by default the one it was trained on.",
)
base_option = click.option(
    "--base-gguf",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="The GGUF file that the base model is served from, where one must be made of it.",
)


clone_option = click.option(
    "--clone",
    "clones",
    multiple=True,
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="A clone that rows of edits come from, beside this repository; several times. Its tests are run where its own "
    "configuration names a test_command.",
)


@click.group()
def command() -> None:
    """Evaluate, deploy, list and retire trained adapters. ADAPTER is the number or the tag that `list` shows."""


@command.command(name="list")
@options.repo_option
@options.json_option
@options.exact_option
def list_command(repo: Path, as_json: bool) -> int:
    """List every adapter with its evaluations, and which of them answer. Ends with 0; 2: the configuration."""
    with adapters.open_adapters(repo) as parts:
        rows = [
            (each, parts.record.write(list_evaluations, each.id))
            for each in parts.record.write(list_adapters)
        ]
    list_rows(rows, as_json=as_json)
    return 0


@command.command()
@adapter_argument
@also_option
@dataset_option
@clone_option
@base_option
@options.repo_option
@options.json_option
@options.exact_option
def evaluate(
    adapter: str,
    also: tuple[str, ...],
    dataset: Path | None,
    clones: tuple[Path, ...],
    base_gguf: Path | None,
    repo: Path,
    as_json: bool,
) -> int:
    """Ask base and adapter the same held-out questions, and judge by the gate whether the adapter is better.

    Ends with 0 where it passed, else with 1; 2: the command, the configuration, the data or a missing file; 3: the model
    server.
    """
    row, made = adapters.evaluate(
        repo,
        adapter,
        also=also,
        dataset=dataset,
        clones=clones,
        base_gguf=base_gguf,
        open_bar=output.ProgressBar,
        warn=output.aside,
    )
    tell_evaluation(row, made, as_json=as_json)
    return 0 if made.finding.passed else 1


@command.command()
@adapter_argument
@click.option(
    "--force", "reason", metavar="REASON", help="Deploy without a passed gate; the reason is recorded."
)
@dataset_option
@base_option
@options.repo_option
@options.json_option
@options.exact_option
def deploy(
    adapter: str, reason: str | None, dataset: Path | None, base_gguf: Path | None, repo: Path, as_json: bool
) -> int:
    """Have the adapter answer for its prompt, once it passed `cra adapters evaluate`.

    Ends with 0; 2: the gate was not passed, or the command, the configuration or a file is not fit; 3: the model server.
    """
    if reason is not None and not reason.strip():
        raise UsageError("--force needs a reason")
    changed, note = adapters.deploy(
        repo,
        adapter,
        reason=reason,
        dataset=dataset,
        base_gguf=base_gguf,
        open_bar=output.ProgressBar,
        warn=output.aside,
    )
    tell(changed, as_json=as_json, note=note)
    return 0


@command.command()
@adapter_argument
@options.repo_option
@options.json_option
@options.exact_option
def retire(adapter: str, repo: Path, as_json: bool) -> int:
    """Take the adapter back: what it replaced answers again. Ends with 0; 2: it is not in force."""
    with adapters.open_adapters(repo) as parts:
        changed = parts.deployer.retire(parts.adapter(adapter))
    tell(changed, as_json=as_json)
    return 0
