"""`cra adapters`: evaluate, deploy, list and retire trained adapters."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clean_room_agent.app import adapters
from clean_room_agent.artifacts.names import counted
from clean_room_agent.cli import options, output
from clean_room_agent.db.raw.training import (
    AdapterRow,
)
from clean_room_agent.errors import UsageError
from clean_room_agent.json_values import to_plain, to_shown

if TYPE_CHECKING:
    from clean_room_agent.training.adapters import Evaluated
    from clean_room_agent.training.deployment import Changed
    from clean_room_agent.training.gate import Finding


def brief(row: Any) -> dict[str, Any]:
    """An evaluation in the fields that a list needs."""
    return {name: getattr(row, name) for name in ("id", "base_tag", "example_count", "passed", "timestamp")}


def list_rows(rows: "Sequence[tuple[AdapterRow, Sequence[Any]]]", *, as_json: bool) -> None:
    """Print every adapter with its evaluations, and mark those in use."""
    if as_json:
        output.answer_json(
            [
                {**to_shown(adapter), "evaluations": [brief(each) for each in evaluations]}
                for adapter, evaluations in rows
            ]
        )
        return
    for adapter, evaluations in rows:
        mark = "*" if adapter.deployed else " "
        gate = ("passed" if evaluations[-1].passed else "not passed") if evaluations else "not evaluated"
        output.answer(f"{mark} {adapter.id:>3}  {adapter.stage_name:<18} {adapter.model_tag:<40} {gate}")
    if not rows:
        output.answer("no adapters; `cra train` makes one")


def tell_evaluation(row: AdapterRow, made: "Evaluated", *, as_json: bool) -> None:
    """Print the gate's finding, and the questions that were left out."""
    if as_json:
        output.answer_json(
            {
                "evaluation_id": made.id,
                "adapter_id": row.id,
                "finding": made.finding.as_object(),
                "left_out": made.material.left_out,
                "limited": made.material.limited,
                "spread": made.spread,
            }
        )
    else:
        _show(row, made.finding)
        if len(made.spread) > 1:
            gains = ", ".join(f"{tag} {gain:+.3f}" for tag, gain in sorted(made.spread.items()))
            output.answer(f"  gains of adapters of the same dataset: {gains}")
        for reason, number in made.material.left_out.items():
            output.answer(f"  {number:>7,}  left out: {reason}")
        for reason, number in made.material.limited.items():
            output.answer(f"  {number:>7,}  {reason}")
        output.answer(
            f"evaluation {made.id}" + (f"; next: cra adapters deploy {row.id}" if made.finding.passed else "")
        )


def _show(adapter: AdapterRow, finding: "Finding") -> None:
    words = {
        "passed": "is better than its base",
        "failed": "did not pass the gate",
        "tie": "answers as its base does",
        "shadow": "cannot be judged on so few examples",
    }
    output.answer(
        f"{adapter.model_tag} {words[finding.status]}: {counted(finding.figures.examples, 'example')} of {counted(finding.figures.tasks, 'task')}"
    )
    for check in finding.checks:
        output.answer(f"  {'ok' if check.holds else 'NO':<3} {check.name}: {check.says}")
    output.answer(f"  a gain of {finding.figures.detectable:.1%} would show in 80 % of the cases")
    for name, values in finding.flips_by.items():
        for value, (better, worse) in values.items():
            output.answer(f"      {name} {value}: {better} better, {worse} worse")


def tell(changed: "Changed", *, as_json: bool, note: str = "") -> None:
    """Print what changed, and the note."""
    if as_json:
        output.answer_json({**to_plain(changed), "note": note})
        return
    before = changed.replaced or "the base"
    output.answer(f"{changed.stage}: {changed.tag or 'the base'} answers, in place of {before}")
    if note:
        output.aside(note)


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
