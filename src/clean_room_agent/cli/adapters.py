"""`cra adapters`: evaluate, deploy, list and retire trained adapters."""

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clean_room_agent.artifacts.ids import new_task_id
from clean_room_agent.cli import options, output, wiring
from clean_room_agent.cli.call_rows import RecordSink
from clean_room_agent.cli.clock import utc_now
from clean_room_agent.cli.edit_metrics import edit_metrics
from clean_room_agent.cli.model_server import open_server
from clean_room_agent.cli.prompts import PROMPTS
from clean_room_agent.cli.proofs import RecordedProofs
from clean_room_agent.cli.settings import Overrides, Settings, load_settings
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import (
    AdapterRow,
    get_adapter,
    get_dataset,
    list_adapters,
    list_evaluations,
)
from clean_room_agent.errors import UsageError
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.exchange import Transport
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.orchestrator.meter import Meter
from clean_room_agent.workspace import Workspace

if TYPE_CHECKING:
    from clean_room_agent.llm.prompt import Prompt
    from clean_room_agent.training.adapters import Evaluated
    from clean_room_agent.training.deployment import Changed, Deployer
    from clean_room_agent.training.evaluation import Arm
    from clean_room_agent.training.gate import Finding
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open:
    """What each of the commands has open."""

    workspace: Workspace
    settings: Settings
    record: Record
    deployer: "Deployer"

    def adapter(self, given: str) -> AdapterRow:
        """The adapter of this number or tag.

        Raises:
            UsageError: there is none.
        """
        known = self.record.write(list_adapters)
        found = self.record.write(get_adapter, int(given)) if given.isdecimal() else None
        found = found or next((each for each in known if each.model_tag == given), None)
        if found is None:
            tags = ", ".join(each.model_tag for each in known) or "none; `cra train` makes one"
            raise UsageError(f"there is no adapter {given}", hint=f"adapters: {tags}")
        return found

    def other_prompts(self, adapter: AdapterRow, named: Sequence[str]) -> "list[Prompt[Any, Any]]":
        """The prompts that are named, and those that the configuration gives the adapter beside its own.

        Raises:
            UsageError: a name is none of a prompt.
        """
        known = {prompt.name: prompt for prompt in PROMPTS}
        for name in named:
            if name not in known:
                raise UsageError(f"there is no prompt {name}", hint=f"prompts: {', '.join(sorted(known))}")
        given = {name for name, tag in self.deployer.in_force().items() if tag == adapter.model_tag}
        return [known[name] for name in sorted(({*named} | (given & known.keys())) - {adapter.stage_name})]

    def prompt(self, adapter: AdapterRow) -> "Prompt[Any, Any]":
        """The prompt that the adapter is for.

        Raises:
            UsageError: this program has no such prompt.
        """
        for prompt in PROMPTS:
            if prompt.name == adapter.stage_name:
                return prompt
        raise UsageError(
            f"{adapter.model_tag} is for {adapter.stage_name}, which is no prompt of this program"
        )

    def dataset(self, adapter: AdapterRow, given: Path | None) -> Path:
        """The folder of the held-out questions."""
        row = self.record.write(get_dataset, adapter.dataset_id)
        assert row is not None
        return given or Path(row.dataset_path)

    def arm(self, prompt: "Prompt[Any, Any]", tag: str, transport: Transport) -> "Arm":
        """The prompt answered by this model, whatever the configuration says."""
        from clean_room_agent.training.evaluation import Arm

        models = self.settings.models.model_copy(update={"overrides": {prompt.name: tag}})
        router = ModelRouter(models, self.settings.budget)
        sink = RecordSink(self.record, Meter(), router)
        client = ModelClient(router, transport, sink, utc_now, proofs=RecordedProofs(self.record))
        return Arm(tag=tag, models=client)

    def serve(self, adapter: AdapterRow, base_gguf: Path | None) -> "Served":
        """The server answers under the adapter's tag."""
        from clean_room_agent.training.convert import convert_adapter
        from clean_room_agent.training.serving import Host

        models = self.settings.models
        bar = output.ProgressBar("handing it to the server")
        try:
            host = Host(
                models=models,
                server=open_server(models),
                workspace=self.workspace,
                key=os.environ.get(models.api_key_env or "", ""),
                progress=bar.show,
                say=output.aside,
            )
            return host.serve(
                adapter, convert_adapter, base_gguf=base_gguf, siblings=self.record.write(list_adapters)
            )
        finally:
            bar.close()


@contextlib.contextmanager
def _opened(repo: Path) -> Iterator[_Open]:
    from clean_room_agent.training.deployment import Deployer

    workspace = wiring.workspace_of(repo)
    options.require_record(workspace)
    settings = load_settings(workspace.config, Overrides())
    with Record.open(workspace.repo, clock=utc_now) as record:
        roles = {prompt.name: prompt.role for prompt in PROMPTS}
        deployer = Deployer(workspace=workspace, record=record, roles=roles)
        deployer.tell_who_is_in_force()
        yield _Open(workspace=workspace, settings=settings, record=record, deployer=deployer)


@command.command(name="list")
@options.repo_option
@options.json_option
@options.exact_option
def list_command(repo: Path, as_json: bool) -> int:
    """List every adapter with its evaluations, and which of them answer. Ends with 0; 2: the configuration."""
    with _opened(repo) as parts:
        rows = [
            (each, parts.record.write(list_evaluations, each.id))
            for each in parts.record.write(list_adapters)
        ]
    if as_json:
        output.answer_json(
            [
                {**output.plain(adapter), "evaluations": [_brief(each) for each in evaluations]}
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


def _brief(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in ("id", "base_tag", "example_count", "passed", "timestamp")}


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
        parts = stack.enter_context(_opened(repo))
        row = parts.adapter(adapter)
        parts.settings.require("models", "budget")
        folder = parts.dataset(row, dataset)
        prompts = [parts.prompt(row), *parts.other_prompts(row, also)]
        metrics = edit_metrics(stack, prompts, (parts.workspace.repo, *clones))
        materials = [material_of(folder, prompt, metrics.get(prompt.name)) for prompt in prompts]
        served = parts.serve(row, base_gguf)
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
    _tell_evaluation(row, made, as_json=as_json)
    return 0 if made.finding.passed else 1


def _tell_evaluation(row: AdapterRow, made: "Evaluated", *, as_json: bool) -> None:
    if as_json:
        output.answer_json(
            {
                "evaluation_id": made.id,
                "adapter_id": row.id,
                "finding": made.finding,
                "left_out": made.left_out,
                "limited": made.limited,
                "spread": made.spread,
            }
        )
    else:
        _show(row, made.finding)
        if len(made.spread) > 1:
            gains = ", ".join(f"{tag} {gain:+.3f}" for tag, gain in sorted(made.spread.items()))
            output.answer(f"  gains of adapters of the same dataset: {gains}")
        for reason, number in made.left_out.items():
            output.answer(f"  {number:>7,}  left out: {reason}")
        for reason, number in made.limited.items():
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
        f"{adapter.model_tag} {words[finding.status]}: {finding.examples} examples of {finding.tasks} tasks"
    )
    for check in finding.checks:
        output.answer(f"  {'ok' if check.holds else 'NO':<3} {check.name}: {check.says}")
    output.answer(f"  a gain of {finding.detectable:.1%} would show in 80 % of the cases")
    for name, values in finding.flips_by.items():
        for value, (better, worse) in values.items():
            output.answer(f"      {name} {value}: {better} better, {worse} worse")


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
    with _opened(repo) as parts:
        row = parts.adapter(adapter)
        evaluation = passed_evaluation(parts.record, row)
        if evaluation is None and reason is None:
            raise UsageError(
                f"{row.model_tag} has not passed the gate",
                hint=f"`cra adapters evaluate {row.id}`; or --force REASON",
            )
        prompt = parts.prompt(row)
        parts.settings.require("models", "budget")
        served = parts.serve(row, base_gguf)
        if evaluation is not None and reason is None:
            arm = parts.arm(prompt, served.tag, open_server(parts.settings.models))
            material = material_of(parts.dataset(row, dataset), prompt)
            require_same_answers(prompt, material, arm, evaluation, task_id=new_task_id())
        changed = parts.deployer.deploy(
            row, evaluation_id=evaluation.id if evaluation else None, reason=(reason or "").strip()
        )
    _tell(changed, as_json=as_json, note=served.note)
    return 0


@command.command()
@adapter_argument
@options.repo_option
@options.json_option
@options.exact_option
def retire(adapter: str, repo: Path, as_json: bool) -> int:
    """Take the adapter back: what it replaced answers again. Ends with 0; 2: it is not in force."""
    with _opened(repo) as parts:
        changed = parts.deployer.retire(parts.adapter(adapter))
    _tell(changed, as_json=as_json)
    return 0


def _tell(changed: "Changed", *, as_json: bool, note: str = "") -> None:
    if as_json:
        output.answer_json({**dataclasses.asdict(changed), "note": note})
        return
    before = changed.replaced or "the base"
    output.answer(f"{changed.stage}: {changed.tag or 'the base'} answers, in place of {before}")
    if note:
        output.aside(note)
