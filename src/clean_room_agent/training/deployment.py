"""Which adapter is used for a prompt, and changing that safely, even if the process dies half-way.

One file decides: `[models.overrides]` of the configuration. It is replaced atomically, and that is the moment of the
change:

1. the server can answer under the new tag (nothing asks for it yet);
2. the record announces the change, with the tag that is replaced;
3. the configuration is replaced;
4. the registry and the index are updated (`tell_who_is_in_force`), which every later command does again.

If the process is killed before step 3, the old adapter stays in use, afterwards the new one. What step 4 writes follows
from the configuration alone, and an announcement that was not carried out is recognised (`previous_tags`).

The announcements, replayed as a stack, say what to go back to. Example: deploy v1, deploy v2, killed before step 3 of
deploying v3: `replaced_tag` is "", v1, v2 and the configuration says v2. Replayed and reduced to v2, the stack is v1,
v2: retiring v2 brings v1 back, and retiring that brings back the base.
"""

import contextlib
from collections.abc import Iterable, Mapping

from msgspec import Struct

from clean_room_agent.artifacts.context import Role
from clean_room_agent.config import read_toml, with_entry
from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.curated.metadata import AdapterRow as ActiveAdapter
from clean_room_agent.db.curated.metadata import set_active_adapters
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import (
    Action,
    AdapterRow,
    DeploymentRow,
    append_deployment,
    list_adapters,
    list_deployments,
    set_deployed,
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
            if self.in_force().get(adapter.stage_name) == adapter.model_tag:
                raise UsageError(f"{adapter.model_tag} already answers {adapter.stage_name}")
            return self._change(
                adapter, "deploy", adapter.model_tag, evaluation_id=evaluation_id, reason=reason
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
            below = previous_tags(rows, current)
            return self._change(adapter, "retire", below[-1] if below else "")

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
                self.record.write(set_deployed, each.id, deployed=deployed)
        if not self.workspace.curated.exists():
            return  # `adapter_metadata` belongs to an index, and an empty one would look like that of an empty repository
        known = {(each.stage_name, each.model_tag): each for each in adapters}
        active = [known[pair] for pair in sorted(overrides.items()) if pair in known]
        with contextlib.closing(get_connection("curated", repo_path=self.workspace.repo)) as conn:
            set_active_adapters(conn, [self._active(each) for each in active])

    def _change(
        self,
        adapter: AdapterRow,
        action: Action,
        tag: str,
        *,
        evaluation_id: int | None = None,
        reason: str = "",
    ) -> Changed:
        stage, path = adapter.stage_name, self.workspace.config
        replaced = self.in_force().get(stage, "")
        content = path.read_bytes()
        file = decode(content, max_bytes=len(content))
        text = with_entry(file.text, TABLE, stage, tag or None)
        row = DeploymentRow(
            adapter_id=adapter.id,
            evaluation_id=evaluation_id,
            stage_name=stage,
            action=action,
            tag=tag,
            replaced_tag=replaced,
            reason=reason,
            timestamp=self.record.now(),
        )
        self.record.write(append_deployment, row)
        atomic_write(path, file.encode(text), private=True)
        self.tell_who_is_in_force()
        return Changed(stage=stage, tag=tag, replaced=replaced)

    def _active(self, adapter: AdapterRow) -> ActiveAdapter:
        return ActiveAdapter(
            id=0,
            stage_name=adapter.stage_name,
            base_model="coding" if self.roles[adapter.stage_name] == "coding" else "reasoning",
            model_tag=adapter.model_tag,
            version=str(adapter.id),
            performance_notes=None,
            deployed_at=self.record.now(),
        )


def previous_tags(rows: Iterable[DeploymentRow], current: str) -> tuple[str, ...]:
    """The tags that were in use before `current` and have not been retired since, oldest first, without the base."""
    stack: list[str] = []
    for row in rows:
        _settle(stack, row.replaced_tag)
        if row.action == "retire":
            _settle(stack, row.tag)
        else:
            stack = [tag for tag in stack if tag != row.tag] + [row.tag]
    _settle(stack, current)
    return tuple(stack[:-1])


def _settle(stack: list[str], tag: str) -> None:
    """Cut the stack back to the tag that was really in use: whatever is above it never was, or was removed by hand."""
    if tag in stack:
        del stack[stack.index(tag) + 1 :]
    elif tag:
        stack.append(tag)
    else:
        stack.clear()
