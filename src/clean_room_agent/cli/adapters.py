"""`cra adapters`: evaluate, deploy, list and retire trained adapters."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clean_room_agent.app.adapters import OpenAdapters, open_adapters
from clean_room_agent.app.edit_metrics import edit_metrics
from clean_room_agent.app.model_server import open_server
from clean_room_agent.artifacts.ids import new_task_id
from clean_room_agent.cli import options, output
from clean_room_agent.cli.views.adapters import brief, tell, tell_evaluation
from clean_room_agent.db.raw.training import (
    AdapterRow,
    list_adapters,
    list_evaluations,
)
from clean_room_agent.errors import UsageError
from clean_room_agent.report.values import plain

if TYPE_CHECKING:
    from clean_room_agent.training.serving import Served

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
    with open_adapters(repo) as parts:
        rows = [
            (each, parts.record.write(list_evaluations, each.id))
            for each in parts.record.write(list_adapters)
        ]
    if as_json:
        output.answer_json(
            [
                {**plain(adapter), "evaluations": [brief(each) for each in evaluations]}
                for adapter, evaluations in rows
            ]
        )
        return 0
    for adapter, evaluations in rows:
        mark = "*" if adapter.deployed else " "
        gate = ("passed" if evaluations[-1].passed else "not passed") if evaluations else "not evaluated"
        output.answer(f"{mark} {adapter.id:>3}  {adapter.stage_name:<18} {adapter.model_tag:<40} {gate}")
    if not rows:
        output.answer("no adapters; `cra train` makes one")
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
    from clean_room_agent.training.adapters import Asked, evaluate_adapter, material_of

    with contextlib.ExitStack() as stack:
        parts = stack.enter_context(open_adapters(repo))
        row = parts.adapter(adapter)
        parts.settings.require("models", "budget")
        folder = parts.dataset(row, dataset)
        prompts = [parts.prompt(row), *parts.other_prompts(row, also)]
        metrics = edit_metrics(stack, prompts, (parts.workspace.repo, *clones))
        materials = [material_of(folder, prompt, metrics.get(prompt.name)) for prompt in prompts]
        served = _served(parts, row, base_gguf)
        transport = open_server(parts.settings.models)
        bar = output.ProgressBar("asking")
        first, *others = (
            Asked(
                prompt=prompt,
                material=material,
                base=parts.arm(prompt, served.control, transport),
                candidate=parts.arm(prompt, served.tag, transport),
            )
            for prompt, material in zip(prompts, materials, strict=True)
        )
        try:
            made = evaluate_adapter(
                parts.record,
                row,
                first,
                others=others,
                task_id=new_task_id(),
                progress=bar.show,
                say=output.aside,
            )
        finally:
            bar.close()
    tell_evaluation(row, made, as_json=as_json)
    return 0 if made.finding.passed else 1


def _served(parts: OpenAdapters, row: AdapterRow, base_gguf: Path | None) -> "Served":
    with contextlib.closing(output.ProgressBar("handing it to the server")) as bar:
        return parts.serve(row, base_gguf, bar, output.aside)


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
    from clean_room_agent.training.adapters import material_of, passed_evaluation, require_same_answers

    if reason is not None and not reason.strip():
        raise UsageError("--force needs a reason")
    with open_adapters(repo) as parts:
        row = parts.adapter(adapter)
        evaluation = passed_evaluation(parts.record, row)
        if evaluation is None and reason is None:
            raise UsageError(
                f"{row.model_tag} has not passed the gate",
                hint=f"`cra adapters evaluate {row.id}`; or --force REASON",
            )
        prompt = parts.prompt(row)
        parts.settings.require("models", "budget")
        served = _served(parts, row, base_gguf)
        if evaluation is not None and reason is None:
            arm = parts.arm(prompt, served.tag, open_server(parts.settings.models))
            material = material_of(parts.dataset(row, dataset), prompt)
            require_same_answers(prompt, material, arm, evaluation, task_id=new_task_id())
        changed = parts.deployer.deploy(
            row, evaluation_id=evaluation.id if evaluation else None, reason=(reason or "").strip()
        )
    tell(changed, as_json=as_json, note=served.note)
    return 0


@command.command()
@adapter_argument
@options.repo_option
@options.json_option
@options.exact_option
def retire(adapter: str, repo: Path, as_json: bool) -> int:
    """Take the adapter back: what it replaced answers again. Ends with 0; 2: it is not in force."""
    with open_adapters(repo) as parts:
        changed = parts.deployer.retire(parts.adapter(adapter))
    tell(changed, as_json=as_json)
    return 0
