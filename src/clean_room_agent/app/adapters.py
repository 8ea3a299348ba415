"""Evaluates, deploys, lists and retires adapters: the registry, the server that serves them, and clients that ask them."""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from clean_room_agent.app import wiring
from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.model_records import RecordedProofs, RecordSink
from clean_room_agent.app.model_server import open_server
from clean_room_agent.app.progress import Bar
from clean_room_agent.app.prompts import PROMPTS
from clean_room_agent.app.settings import Overrides, Settings, load_settings
from clean_room_agent.artifacts.names import new_task_id, row_number
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import (
    AdapterRow,
    EvaluationRow,
    get_adapter,
    get_dataset,
    list_adapters,
    list_evaluations,
)
from clean_room_agent.errors import UsageError
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.llm.transport import Transport
from clean_room_agent.orchestrator.spending import Meter
from clean_room_agent.workspace import CACHE_HINT, Workspace

if TYPE_CHECKING:
    from clean_room_agent.llm.prompt import Prompt
    from clean_room_agent.training.adapters import Evaluated
    from clean_room_agent.training.deployment import Changed, Deployer
    from clean_room_agent.training.evaluation import Arm
    from clean_room_agent.training.serving import Served
from collections.abc import Iterable
from typing import TYPE_CHECKING

from clean_room_agent.artifacts.names import short_id
from clean_room_agent.artifacts.outcomes import PassType
from clean_room_agent.git.repository import open_repository
from clean_room_agent.workspace import private_folder

if TYPE_CHECKING:
    from clean_room_agent.llm.prompt import Prompt
    from clean_room_agent.training.edit_steps import Clone
    from clean_room_agent.training.metrics import Metric


class OpenAdapters(Struct, frozen=True, kw_only=True):
    """The registry of adapters, open for a command."""

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
        number = row_number(given)
        found = None if number is None else self.record.write(get_adapter, number)
        found = found or next((each for each in known if each.model_tag == given), None)
        if found is None:
            tags = ", ".join(each.model_tag for each in known) or "none; `cra train` makes one"
            raise UsageError(f"there is no adapter {given}", hint=f"adapters: {tags}")
        return found

    def other_prompts(self, adapter: AdapterRow, named: Sequence[str]) -> "list[Prompt[Any, Any]]":
        """The named prompts, and those besides its own that the configuration assigns to the adapter.

        Raises:
            UsageError: there is no prompt of that name.
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
            f"{adapter.model_tag} is for {adapter.stage_name}, which is not a prompt of this program"
        )

    def dataset(self, adapter: AdapterRow, given: Path | None) -> Path:
        """The folder of the held-out questions."""
        row = self.record.write(get_dataset, adapter.dataset_id)
        assert row is not None
        return given or Path(row.dataset_path)

    def arm(self, prompt: "Prompt[Any, Any]", tag: str, transport: Transport) -> "Arm":
        """The prompt, answered by this model whatever the configuration says."""
        from clean_room_agent.training.evaluation import Arm

        own = self.settings.models.for_role(prompt.role)
        models = structs.replace(own, overrides={prompt.name: tag})
        router = ModelRouter(models, self.settings.budget)
        sink = RecordSink(self.record, Meter(), router)
        client = ModelClient(router, transport, sink, utc_now, proofs=RecordedProofs(self.record))
        return Arm(tag=tag, models=client)

    def serve(
        self,
        adapter: AdapterRow,
        base_gguf: Path | None,
        open_bar: Callable[[str], Bar],
        warn: Callable[[str], None],
    ) -> "Served":
        """Make the server answer under the adapter's tag."""
        from clean_room_agent.training.convert import convert_adapter
        from clean_room_agent.training.serving import Host

        models = self.settings.models.for_role(self.prompt(adapter).role)
        with contextlib.closing(open_bar("handing it to the server")) as bar:
            host = Host(
                models=models,
                server=open_server(models),
                workspace=self.workspace,
                key=os.environ.get(models.api_key_env or "", ""),
                progress=bar.show,
                say=warn,
            )
            return host.serve(
                adapter, convert_adapter, base_gguf=base_gguf, siblings=self.record.write(list_adapters)
            )


@contextlib.contextmanager
def open_adapters(repo: Path) -> Iterator[OpenAdapters]:
    """Open the registry of the repository around `repo`."""
    from clean_room_agent.training.deployment import Deployer

    workspace = wiring.workspace_of(repo)
    wiring.require_record(workspace)
    settings = load_settings(workspace.config, Overrides())
    with Record.open(workspace.repo, clock=utc_now) as record:
        roles = {prompt.name: prompt.role for prompt in PROMPTS}
        deployer = Deployer(workspace=workspace, record=record, roles=roles)
        deployer.tell_who_is_in_force()
        yield OpenAdapters(workspace=workspace, settings=settings, record=record, deployer=deployer)


def list_evaluated(repo: Path) -> "list[tuple[AdapterRow, tuple[EvaluationRow, ...]]]":
    """Every adapter with its evaluations."""
    with open_adapters(repo) as parts:
        return [
            (each, parts.record.write(list_evaluations, each.id))
            for each in parts.record.write(list_adapters)
        ]


def retire(repo: Path, given: str) -> "Changed":
    """Stop using the adapter; what it replaced is used again.

    Raises:
        UsageError: there is no such adapter, or it is not deployed.
    """
    with open_adapters(repo) as parts:
        return parts.deployer.retire(parts.adapter(given))


def evaluate(
    repo: Path,
    given: str,
    *,
    also: Sequence[str],
    dataset: Path | None,
    clones: Sequence[Path],
    base_gguf: Path | None,
    open_bar: Callable[[str], Bar],
    warn: Callable[[str], None],
) -> "tuple[AdapterRow, Evaluated]":
    """Evaluate the adapter: the gate's finding on its answers and its base's to the same held-out questions.

    Raises:
        UsageError: there is no such adapter or prompt.
        ModelError: the server's failure.
    """
    from clean_room_agent.training.adapters import Asked, evaluate_adapter, material_of

    with contextlib.ExitStack() as stack:
        parts = stack.enter_context(open_adapters(repo))
        row = parts.adapter(given)
        parts.settings.require("models", "budget")
        folder = parts.dataset(row, dataset)
        prompts = [parts.prompt(row), *parts.other_prompts(row, also)]
        metrics = edit_metrics(stack, prompts, (parts.workspace.repo, *clones))
        materials = [material_of(folder, prompt, metrics.get(prompt.name)) for prompt in prompts]
        served = parts.serve(row, base_gguf, open_bar, warn)
        transport = open_server(parts.settings.models.for_role(prompts[0].role))
        first, *others = (
            Asked(
                prompt=prompt,
                material=material,
                base=parts.arm(prompt, served.control, transport),
                candidate=parts.arm(prompt, served.tag, transport),
            )
            for prompt, material in zip(prompts, materials, strict=True)
        )
        bar = stack.enter_context(contextlib.closing(open_bar("asking")))
        task_id = new_task_id()
        return row, evaluate_adapter(
            parts.record, row, first, others=others, task_id=task_id, progress=bar.show, say=warn
        )


def deploy(
    repo: Path,
    given: str,
    *,
    reason: str | None,
    dataset: Path | None,
    base_gguf: Path | None,
    open_bar: Callable[[str], Bar],
    warn: Callable[[str], None],
) -> "tuple[Changed, str]":
    """Use the adapter for its prompt, if it passed the gate, or for a `reason`. Returns what changed, and a note.

    Raises:
        UsageError: it has not passed, or answers differently from when it passed.
        ModelError: the server's failure.
    """
    from clean_room_agent.training.adapters import material_of, passed_evaluation, require_same_answers

    with open_adapters(repo) as parts:
        row = parts.adapter(given)
        evaluation = passed_evaluation(parts.record, row)
        if evaluation is None and reason is None:
            raise UsageError(
                f"{row.model_tag} has not passed the gate",
                hint=f"`cra adapters evaluate {row.id}`; or --force REASON",
            )
        prompt = parts.prompt(row)
        parts.settings.require("models", "budget")
        served = parts.serve(row, base_gguf, open_bar, warn)
        if evaluation is not None and reason is None:
            arm = parts.arm(prompt, served.tag, open_server(parts.settings.models.for_role(prompt.role)))
            material = material_of(parts.dataset(row, dataset), prompt)
            require_same_answers(prompt, material, arm, evaluation, task_id=new_task_id())
        changed = parts.deployer.deploy(
            row, evaluation_id=evaluation.id if evaluation else None, reason=(reason or "").strip()
        )
    return changed, served.note


def edit_metrics(
    stack: contextlib.ExitStack, prompts: Sequence["Prompt[Any, Any]"], clones: Iterable[Path]
) -> "dict[str, Metric]":
    """For each prompt that asks for edits, the metric that uses these clones. Their worktrees are removed with `stack`."""
    if PassType.IMPLEMENT.value not in {prompt.name for prompt in prompts}:
        return {}
    from clean_room_agent.training.edit_steps import EditSteps

    return {PassType.IMPLEMENT.value: EditSteps([_clone(stack, path) for path in clones])}


def _clone(stack: contextlib.ExitStack, path: Path) -> "Clone":
    """The clone at the path, with its tests if its configuration names them.

    Raises:
        RepositoryError: there is no repository.
        UsageError: its configuration is not the user's own, or invalid.
        ConfigError: it configures a sandbox that is not possible.
    """
    from clean_room_agent.app.run_wiring import sandbox_inputs_of
    from clean_room_agent.training.edit_steps import Clone, opened_tests

    repo = open_repository(path)
    workspace = wiring.workspace_of(repo.top)
    settings = load_settings(workspace.config, Overrides()) if workspace.config.exists() else None
    if settings is None or "test_command" not in settings.data.get("testing", {}):
        return Clone(repo=repo, why_untested=f"{workspace.config} names no test_command")
    task_id = new_task_id()
    place = private_folder(wiring.worktrees_folder(workspace, settings), hint=CACHE_HINT) / short_id(task_id)
    run = stack.enter_context(
        opened_tests(repo, sandbox_inputs_of(settings), place, task_id, dict(os.environ))
    )
    return Clone(repo=repo, run_tests=run)
