"""`cra adapters`: evaluate, deploy, list and retire trained adapters."""

from pathlib import Path

import click

from clean_room_agent.app import adapters
from clean_room_agent.cli import options, output
from clean_room_agent.cli.views.adapters import list_rows, tell, tell_evaluation
from clean_room_agent.errors import UsageError

ALSO = (
    "Another prompt to evaluate the adapter on; it must not do worse there. Repeatable. Prompts that the configuration "
    "assigns to the adapter are always included."
)
CLONE = "Another clone that rows of edits come from. Repeatable. Its tests are run if its own configuration names a test_command."
DATASET = "The dataset with the held-out split; by default the one it was trained on."
BASE = "The base model's GGUF file, if the server needs one to build on."
EXISTING_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)
EXISTING_FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)
FOLDER = click.Path(path_type=Path, file_okay=False)
adapter_argument = click.argument("adapter", metavar="ADAPTER")
dataset_option = click.option("--dataset", type=FOLDER, help=DATASET)
base_option = click.option("--base-gguf", type=EXISTING_FILE, help=BASE)


def _shared(command: options.CommandT) -> options.CommandT:
    return options.repo_option(options.json_option(options.exact_option(command)))


@click.group()
def command() -> None:
    """Evaluate, deploy, list and retire trained adapters. ADAPTER is the number or the tag that `list` shows."""


@command.command(name="list")
@_shared
def list_command(repo: Path, as_json: bool) -> int:
    """List every adapter with its evaluations, and mark those in use."""
    list_rows(adapters.list_evaluated(repo), as_json=as_json)
    return 0


@command.command()
@adapter_argument
@click.option("--also", multiple=True, type=options.PROMPT, metavar="PROMPT", help=ALSO)
@dataset_option
@click.option("--clone", "clones", multiple=True, type=EXISTING_FOLDER, help=CLONE)
@base_option
@_shared
def evaluate(
    adapter: str,
    also: tuple[str, ...],
    dataset: Path | None,
    clones: tuple[Path, ...],
    base_gguf: Path | None,
    repo: Path,
    as_json: bool,
) -> int:
    """Ask the base and the adapter the same held-out questions, and let the gate decide whether the adapter is better.

    Exit codes: 0 it passed, 1 it did not, 2 usage, configuration, data or a missing file, 3 model server.
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
@_shared
def deploy(
    adapter: str, reason: str | None, dataset: Path | None, base_gguf: Path | None, repo: Path, as_json: bool
) -> int:
    """Use the adapter for its prompt, once it has passed `cra adapters evaluate`.

    Exit codes: 0 deployed, 2 it has not passed, or usage, configuration or a file, 3 model server.
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
@_shared
def retire(adapter: str, repo: Path, as_json: bool) -> int:
    """Stop using the adapter; what it replaced is used again."""
    tell(adapters.retire(repo, adapter), as_json=as_json)
    return 0
