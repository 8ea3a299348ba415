"""The registry of adapters of a repository, open for a command: finds them, serves them and compares them with their base."""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from clean_room_agent.app import wiring
from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.model_records import RecordedProofs, RecordSink
from clean_room_agent.app.model_server import open_server
from clean_room_agent.app.prompts import BY_NAME
from clean_room_agent.app.settings import Overrides, Settings, load_settings
from clean_room_agent.artifacts.names import new_task_id, row_number
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import AdapterRow, get_adapter, get_dataset, list_adapters
from clean_room_agent.errors import UsageError
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.llm.transport import Transport
from clean_room_agent.orchestrator.spending import Meter
from clean_room_agent.training.convert import convert_adapter
from clean_room_agent.training.deployment import Deployer, Host, Served
from clean_room_agent.training.evaluation import Arm, Asked, Evaluated, Material, evaluate_adapter
from clean_room_agent.workspace import Workspace

Progress = Callable[[int, int], None]


class OpenAdapters(Struct, frozen=True, kw_only=True):
    """The registry of adapters, open for a command."""

    workspace: Workspace
    settings: Settings
    record: Record
    deployer: Deployer

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

    def prompts(self, adapter: AdapterRow, also: Sequence[str]) -> list[Prompt[Any, Any]]:
        """The adapter's own prompt, then those of `also`, and those that the configuration assigns to it.

        Raises:
            UsageError: this program has no such prompt.
        """
        given = {name for name, tag in self.deployer.in_force().items() if tag == adapter.model_tag}
        others = sorted(({*also} | (given & BY_NAME.keys())) - {adapter.stage_name})
        for name in (adapter.stage_name, *others):
            if name not in BY_NAME:
                raise UsageError(f"there is no prompt {name}", hint=f"prompts: {', '.join(sorted(BY_NAME))}")
        return [BY_NAME[name] for name in (adapter.stage_name, *others)]

    def dataset(self, adapter: AdapterRow, given: Path | None) -> Path:
        """The folder of the held-out questions."""
        row = self.record.write(get_dataset, adapter.dataset_id)
        assert row is not None, "an adapter's dataset is recorded before it"
        return given or Path(row.dataset_path)

    def arm(self, prompt: Prompt[Any, Any], tag: str, transport: Transport) -> Arm:
        """The prompt, answered by this model whatever the configuration says."""
        own = self.settings.models.for_role(prompt.role)
        models = structs.replace(own, overrides={prompt.name: tag})
        router = ModelRouter(models, self.settings.budget)
        sink = RecordSink(self.record, Meter(), router)
        client = ModelClient(router, transport, sink, utc_now, proofs=RecordedProofs(self.record))
        return Arm(tag=tag, models=client)

    def serve(
        self, adapter: AdapterRow, base_gguf: Path | None, progress: Progress, say: Callable[[str], None]
    ) -> tuple[Served, Transport]:
        """Make the server answer under the adapter's tag; with the server."""
        self.settings.require("models", "budget")
        models = self.settings.models.for_role(self.prompts(adapter, ())[0].role)
        server = open_server(models)
        host = Host(
            models=models,
            server=server,
            workspace=self.workspace,
            key=os.environ.get(models.api_key_env or "", ""),
            progress=progress,
            say=say,
        )
        siblings = self.record.write(list_adapters)
        return host.serve(adapter, convert_adapter, base_gguf=base_gguf, siblings=siblings), server

    def evaluate(
        self,
        adapter: AdapterRow,
        asked: Sequence[tuple[Prompt[Any, Any], Material]],
        served: Served,
        server: Transport,
        progress: Progress,
        say: Callable[[str], None],
    ) -> Evaluated:
        """Ask the served base and adapter the questions, the adapter's own prompt first, and let the gate decide."""
        first, *others = (
            Asked(
                prompt=prompt,
                material=material,
                base=self.arm(prompt, served.control, server),
                candidate=self.arm(prompt, served.tag, server),
            )
            for prompt, material in asked
        )
        return evaluate_adapter(
            self.record, adapter, first, others=others, task_id=new_task_id(), progress=progress, say=say
        )


@contextlib.contextmanager
def open_adapters(repo: Path) -> Iterator[OpenAdapters]:
    """Open the registry of the repository around `repo`."""
    workspace = wiring.workspace_of(repo)
    wiring.require_record(workspace)
    settings = load_settings(workspace.config, Overrides())
    with Record.open(workspace.repo, clock=utc_now) as record:
        roles = {name: prompt.role for name, prompt in BY_NAME.items()}
        deployer = Deployer(workspace=workspace, record=record, roles=roles)
        deployer.tell_who_is_in_force()
        yield OpenAdapters(workspace=workspace, settings=settings, record=record, deployer=deployer)
