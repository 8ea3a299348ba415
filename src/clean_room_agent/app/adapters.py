"""What the commands on adapters have open: the registry, the server that serves them, and the clients that ask them."""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clean_room_agent.app import wiring
from clean_room_agent.app.call_rows import RecordSink
from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.model_server import open_server
from clean_room_agent.app.progress import Bar
from clean_room_agent.app.prompts import PROMPTS
from clean_room_agent.app.proofs import RecordedProofs
from clean_room_agent.app.settings import Overrides, Settings, load_settings
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import (
    AdapterRow,
    get_adapter,
    get_dataset,
    list_adapters,
)
from clean_room_agent.errors import UsageError
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.exchange import Transport
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.orchestrator.meter import Meter
from clean_room_agent.workspace import Workspace

if TYPE_CHECKING:
    from clean_room_agent.llm.prompt import Prompt
    from clean_room_agent.training.deployment import Deployer
    from clean_room_agent.training.evaluation import Arm
    from clean_room_agent.training.serving import Served


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAdapters:
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

    def serve(
        self, adapter: AdapterRow, base_gguf: Path | None, bar: Bar, warn: Callable[[str], None]
    ) -> "Served":
        """The server answers under the adapter's tag."""
        from clean_room_agent.training.convert import convert_adapter
        from clean_room_agent.training.serving import Host

        models = self.settings.models
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
    """They are open for the repository that `repo` stands in."""
    from clean_room_agent.training.deployment import Deployer

    workspace = wiring.workspace_of(repo)
    wiring.require_record(workspace)
    settings = load_settings(workspace.config, Overrides())
    with Record.open(workspace.repo, clock=utc_now) as record:
        roles = {prompt.name: prompt.role for prompt in PROMPTS}
        deployer = Deployer(workspace=workspace, record=record, roles=roles)
        deployer.tell_who_is_in_force()
        yield OpenAdapters(workspace=workspace, settings=settings, record=record, deployer=deployer)
