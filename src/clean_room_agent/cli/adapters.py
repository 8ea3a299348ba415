"""`cra adapters`: evaluate, deploy, list and retire trained adapters."""

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.open_adapters import OpenAdapters, open_adapters
from clean_room_agent.app.run_wiring import runner_setup
from clean_room_agent.app.settings import Overrides, load_settings
from clean_room_agent.artifacts.names import new_task_id, short_id
from clean_room_agent.artifacts.outcomes import PassType
from clean_room_agent.cli import options, output
from clean_room_agent.db.raw.training import AdapterRow, DeploymentRow, list_adapters, list_evaluations
from clean_room_agent.errors import UsageError
from clean_room_agent.git.commits import commit_files
from clean_room_agent.git.repository import open_repository
from clean_room_agent.json_values import to_shown
from clean_room_agent.llm.transport import Transport
from clean_room_agent.orchestrator.events import Nobody
from clean_room_agent.orchestrator.test_runs.worktrees import RunnerSetup, WorktreePool
from clean_room_agent.training.deployment import Served
from clean_room_agent.training.edit_steps import Changes, Clone, EditSteps, Tested
from clean_room_agent.training.evaluation import (
    Evaluated,
    material_of,
    passed_evaluation,
    require_same_answers,
)
from clean_room_agent.training.gate import finding_lines
from clean_room_agent.workspace import CACHE_HINT, private_folder

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
_shared_options = options.all_of(options.repo_option, options.json_option, options.exact_option)


@click.group()
def command() -> None:
    """Evaluate, deploy, list and retire trained adapters. ADAPTER is the number or the tag that `list` shows."""


@command.command(name="list")
@_shared_options
def list_command(repo: Path, as_json: bool) -> int:
    """List every adapter with its evaluations, and mark those in use."""
    with open_adapters(repo) as parts:
        known = parts.record.write(list_adapters)
        rows = [(each, parts.record.write(list_evaluations, each.id)) for each in known]
    _answer_list(rows, as_json=as_json)
    return 0


@command.command()
@adapter_argument
@click.option("--also", multiple=True, metavar="PROMPT", help=ALSO)
@dataset_option
@click.option("--clone", "clones", multiple=True, type=EXISTING_FOLDER, help=CLONE)
@base_option
@_shared_options
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
    with contextlib.ExitStack() as stack:
        parts = stack.enter_context(open_adapters(repo))
        row = parts.adapter(adapter)
        folder = parts.dataset(row, dataset)
        prompts = parts.prompts(row, also)
        asks_edits = PassType.IMPLEMENT.value in {prompt.name for prompt in prompts}
        searched = (parts.workspace.repo, *clones) if asks_edits else ()
        edits = EditSteps([_open_clone(stack, path) for path in searched])
        materials = [material_of(folder, prompt, edits) for prompt in prompts]
        served, server = _serve_adapter(parts, row, base_gguf)
        bar = stack.enter_context(output.ProgressBar("asking"))
        asked = tuple(zip(prompts, materials, strict=True))
        made = parts.evaluate(row, asked, served, server, bar.show, output.aside)
    _answer_evaluation(row, made, as_json=as_json)
    return 0 if made.finding.passed else 1


@command.command()
@adapter_argument
@click.option(
    "--force", "reason", metavar="REASON", help="Deploy without a passed gate; the reason is recorded."
)
@dataset_option
@base_option
@_shared_options
def deploy(
    adapter: str, reason: str | None, dataset: Path | None, base_gguf: Path | None, repo: Path, as_json: bool
) -> int:
    """Use the adapter for its prompt, once it has passed `cra adapters evaluate`.

    Exit codes: 0 deployed, 2 it has not passed, or usage, configuration or a file, 3 model server.
    """
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
        served, server = _serve_adapter(parts, row, base_gguf)
        if evaluation is not None and reason is None:
            prompt = parts.prompts(row, ())[0]
            questions = material_of(parts.dataset(row, dataset), prompt).test.questions
            arm, known = parts.arm(prompt, served.tag, server), json.loads(evaluation.metrics)["fingerprints"]
            require_same_answers(prompt, questions, arm, known, pass_id=new_task_id())
        changed = parts.deployer.deploy(
            row, evaluation_id=evaluation.id if evaluation else None, reason=(reason or "").strip()
        )
    _answer_change(changed, as_json=as_json, note=served.note)
    return 0


@command.command()
@adapter_argument
@_shared_options
def retire(adapter: str, repo: Path, as_json: bool) -> int:
    """Stop using the adapter; what it replaced is used again."""
    with open_adapters(repo) as parts:
        changed = parts.deployer.retire(parts.adapter(adapter))
    _answer_change(changed, as_json=as_json)
    return 0


def _serve_adapter(parts: OpenAdapters, row: AdapterRow, base_gguf: Path | None) -> tuple[Served, Transport]:
    with output.ProgressBar("handing it to the server") as bar:
        return parts.serve(row, base_gguf, bar.show, output.aside)


def _open_clone(stack: contextlib.ExitStack, path: Path) -> Clone:
    """The clone at the path, with its tests if its configuration names them. Its worktree is removed with `stack`."""
    repo = open_repository(path)
    workspace = wiring.workspace_of(repo.top)
    settings = load_settings(workspace.config, Overrides()) if workspace.config.exists() else None
    if settings is None or "test_command" not in settings.data.get("testing", {}):
        return Clone(repo=repo, why_untested=f"{workspace.config} names no test_command")
    task_id = new_task_id()
    place = private_folder(wiring.worktrees_folder(workspace, settings), hint=CACHE_HINT) / short_id(task_id)
    opened = opened_tests(runner_setup(settings, repo, place), task_id)
    return Clone(repo=repo, run_tests=stack.enter_context(opened))


@contextlib.contextmanager
def opened_tests(setup: RunnerSetup, task_id: str) -> Iterator[Callable[[str, Changes], Tested]]:
    """A function that runs the repository's test command on a commit with changed files, in a worktree that is deleted
    afterwards.

    Raises:
        ConfigError: a sandbox is configured, but not possible.
        GitError: the worktree cannot be created.
    """
    repo = setup.repo
    with WorktreePool(setup, task_id, Nobody()).open(repo.head) as pool:

        def run(commit: str, changes: Changes) -> Tested:
            pool.first.checkout(commit_files(repo, commit, changes, "An answer under evaluation\n"))
            done = pool.first.run_all("answer")
            unfinished = "" if done.report.whole else done.report.problem or "they do not come to their end"
            return Tested(
                problem=unfinished,
                exit_code=done.end.returncode,
                red=done.red() if done.report.named else None,
                green=done.green(),
            )

        yield run


def _answer_list(rows: Sequence[tuple[AdapterRow, Sequence[Any]]], *, as_json: bool) -> None:
    """Print every adapter with its evaluations, and mark those in use."""
    if as_json:
        brief = ("id", "base_tag", "example_count", "passed", "timestamp")
        output.answer_json(
            [
                {
                    **to_shown(adapter),
                    "evaluations": [{name: getattr(each, name) for name in brief} for each in evaluations],
                }
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


def _answer_evaluation(row: AdapterRow, made: Evaluated, *, as_json: bool) -> None:
    """Print the gate's finding, and the questions that were left out."""
    if as_json:
        output.answer_json(
            {
                "evaluation_id": made.id,
                "adapter_id": row.id,
                "finding": made.finding.as_object(),
                "left_out": made.material.test.left_out,
                "limited": made.material.test.limited,
                "spread": made.spread,
            }
        )
    else:
        output.answer("\n".join(finding_lines(row.model_tag, made.finding.as_object())))
        if len(made.spread) > 1:
            gains = ", ".join(f"{tag} {gain:+.3f}" for tag, gain in sorted(made.spread.items()))
            output.answer(f"  gains of adapters of the same dataset: {gains}")
        for reason, number in made.material.test.left_out.items():
            output.answer(f"  {number:>7,}  left out: {reason}")
        for reason, number in made.material.test.limited.items():
            output.answer(f"  {number:>7,}  {reason}")
        output.answer(
            f"evaluation {made.id}" + (f"; next: cra adapters deploy {row.id}" if made.finding.passed else "")
        )


def _answer_change(changed: DeploymentRow, *, as_json: bool, note: str = "") -> None:
    """Print what changed, and the note."""
    if as_json:
        tags = {"tag": changed.tag, "replaced": changed.replaced_tag}
        output.answer_json({"stage": changed.stage_name, **tags, "note": note})
        return
    before = changed.replaced_tag or "the base"
    output.answer(f"{changed.stage_name}: {changed.tag or 'the base'} answers, in place of {before}")
    if note:
        output.aside(note)
