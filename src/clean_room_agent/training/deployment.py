"""Which adapter is used for a prompt, and changing that safely, even if the process dies half-way.

One file decides: `[models.overrides]` of the configuration. It is replaced atomically, and that is the moment of the
change: the server can answer under the new tag before, and the record announces the change with the tag that is replaced.
The registry and the index follow from the configuration, and every later command brings them in line with it.
"""

import contextlib
from collections.abc import Mapping, Sequence
from functools import partial

from msgspec import Struct

from clean_room_agent.artifacts.context import Role
from clean_room_agent.config import read_toml, with_value
from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.curated.metadata import AdapterRow as ActiveAdapter
from clean_room_agent.db.curated.metadata import set_active_adapters
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import (
    ADAPTER_DEPLOYMENTS,
    ADAPTER_REGISTRY,
    AdapterRow,
    DeploymentRow,
    list_adapters,
    list_deployments,
)
from clean_room_agent.errors import UsageError
from clean_room_agent.file_contents import atomic_write, decode
from clean_room_agent.workspace import Workspace, hold

TABLE = "models.overrides"


class Changed(Struct, frozen=True, kw_only=True):
    """The tags used for a prompt, now and before; "" for the base."""

    stage: str
    tag: str
    replaced: str


class Deployer(Struct, frozen=True, kw_only=True):
    """Changes which adapter is used for a prompt, in one repository."""

    workspace: Workspace
    record: Record
    roles: Mapping[str, Role]
    """Of each prompt."""

    def deploy(self, adapter: AdapterRow, *, evaluation_id: int | None, reason: str = "") -> Changed:
        """Use the adapter for its prompt; the server has it already.

        Raises:
            UsageError: it is already in use, or the configuration cannot be changed.
        """
        with hold(self.workspace.adapters_lock, what="the adapters"):
            replaced = self.in_force().get(adapter.stage_name, "")
            if replaced == adapter.model_tag:
                raise UsageError(f"{adapter.model_tag} already answers {adapter.stage_name}")
            return self._change(
                DeploymentRow(
                    adapter_id=adapter.id,
                    evaluation_id=evaluation_id,
                    stage_name=adapter.stage_name,
                    action="deploy",
                    tag=adapter.model_tag,
                    replaced_tag=replaced,
                    reason=reason,
                    timestamp=self.record.now(),
                )
            )

    def retire(self, adapter: AdapterRow) -> Changed:
        """Stop using the adapter: what it replaced (an earlier adapter, or the base) is used again.

        Raises:
            UsageError: the adapter is not in use, or the configuration cannot be changed.
        """
        with hold(self.workspace.adapters_lock, what="the adapters"):
            current = self.in_force().get(adapter.stage_name, "")
            if current != adapter.model_tag:
                shown = f"{current} is" if current else "its base is"
                raise UsageError(
                    f"{adapter.model_tag} does not answer for {adapter.stage_name}: {shown} in force",
                    hint="`cra adapters list` shows what is deployed",
                )
            rows = self.record.write(list_deployments, adapter.stage_name)
            return self._change(
                DeploymentRow(
                    adapter_id=adapter.id,
                    evaluation_id=None,
                    stage_name=adapter.stage_name,
                    action="retire",
                    tag=previous_tag(rows, current),
                    replaced_tag=current,
                    timestamp=self.record.now(),
                )
            )

    def in_force(self) -> Mapping[str, str]:
        """The tag that the configuration gives each prompt with an override."""
        overrides: dict[str, str] = read_toml(self.workspace.config).get("models", {}).get("overrides", {})
        return overrides

    def tell_who_is_in_force(self) -> None:
        """Bring the registry and the index's metadata in line with the configuration."""
        overrides = self.in_force()
        adapters = self.record.write(list_adapters)
        for each in adapters:
            deployed = overrides.get(each.stage_name) == each.model_tag
            if deployed != each.deployed:
                self.record.write(partial(ADAPTER_REGISTRY.update, row_id=each.id, deployed=deployed))
        if not self.workspace.curated.exists():
            return  # an empty index would look like that of an empty repository
        active = [
            ActiveAdapter(
                id=0,
                stage_name=each.stage_name,
                base_model="coding" if self.roles[each.stage_name] == "coding" else "reasoning",
                model_tag=each.model_tag,
                version=str(each.id),
                performance_notes=None,
                deployed_at=self.record.now(),
            )
            for each in {(each.stage_name, each.model_tag): each for each in adapters}.values()
            if overrides.get(each.stage_name) == each.model_tag
        ]
        with contextlib.closing(get_connection("curated", repo_path=self.workspace.repo)) as conn:
            set_active_adapters(conn, active)

    def _change(self, row: DeploymentRow) -> Changed:
        path = self.workspace.config
        content = path.read_bytes()
        file = decode(content, max_bytes=len(content))
        text = with_value(file.text, TABLE.split("."), row.stage_name, row.tag or None)
        self.record.write(ADAPTER_DEPLOYMENTS.insert, row)
        atomic_write(path, file.encode(text), private=True)
        self.tell_who_is_in_force()
        return Changed(stage=row.stage_name, tag=row.tag, replaced=row.replaced_tag)


def previous_tag(rows: Sequence[DeploymentRow], current: str) -> str:
    """The tag that `current` replaced, and which has not been retired since; "" for the base.

    An announcement that nothing followed, because the process died, is of another tag than `current`, and so is not
    looked at. Where v1, v2 and again v1 were deployed, v1 goes back to v2, and v2 to the base, as v1 is retired by then.
    """
    below: dict[str, str] = {}
    retired: set[str] = set()
    for row in rows:
        if row.action == "deploy":
            below[row.tag] = row.replaced_tag
            retired.discard(row.tag)
        else:
            retired.add(row.replaced_tag)
    seen = {current}
    tag = below.get(current, "")
    while tag in retired and tag not in seen:
        seen.add(tag)
        tag = below.get(tag, "")
    return "" if tag in seen else tag
