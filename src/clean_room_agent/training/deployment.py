"""Puts an adapter to use: a server is made to answer with it, and the configuration names it for its prompt.

| server | what it gets | the base it is compared with |
|---|---|---|
| Ollama | the merged model, in the base's own quantisation | the base, merged with nothing and requantised in the same way |
| vLLM | the PEFT folder, at run time | the base |
| llama-server | a preset that it must be restarted with | the base |

The folder of an adapter holds `adapter_config.json` and `adapter_model.safetensors` (PEFT's), `<name>.gguf`, and for a
merged model `merged.gguf` and `control.gguf`.

Which adapter is used is decided by one file: `[models.overrides]` of the configuration. It is replaced atomically, and that
is the moment of the change, even if the process dies half-way: the server can answer under the new tag before, and the
record announces the change with the tag that is replaced. The registry and the index follow from the configuration, and
every later command brings them in line with it.
"""

import contextlib
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from clean_room_agent.artifacts.context import Role
from clean_room_agent.config import read_toml, with_value
from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.curated.metadata import ActiveAdapter, set_active_adapters
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import (
    ADAPTER_DEPLOYMENTS,
    ADAPTER_REGISTRY,
    AdapterRow,
    DeploymentRow,
    list_adapters,
    list_deployments,
)
from clean_room_agent.errors import ModelNotFound, UsageError
from clean_room_agent.file_contents import atomic_write, decode
from clean_room_agent.llm.model_config import ModelsConfig
from clean_room_agent.llm.transport import ModelServer
from clean_room_agent.llm.transports.lora import MARK, create_in_ollama, llama_server_weights, load_into_vllm
from clean_room_agent.workspace import Workspace, hold, private_folder

TABLE = "models.overrides"
PRESET = "llama-server.ini"
"""Stands beside the adapters' folders."""
Convert = Callable[[Path, Path], None]
"""Makes an adapter's GGUF (first argument), with merged models next to it, from the base's GGUF (second argument)."""


class Served(Struct, frozen=True, kw_only=True):
    """The tags that a server answers to."""

    tag: str
    control: str
    """The base model in the form that the adapter is compared with."""
    note: str = ""
    """What a person should know."""


class Host(Struct, frozen=True, kw_only=True):
    """The configured server, on which adapters run."""

    models: ModelsConfig
    server: ModelServer
    workspace: Workspace
    key: str = ""
    progress: Callable[[int, int], None] = lambda _done, _total: None
    say: Callable[[str], None] = lambda _text: None

    def serve(
        self, adapter: AdapterRow, convert: Convert, *, base_gguf: Path | None, siblings: Iterable[AdapterRow]
    ) -> Served:
        """Make the server answer under the adapter's tag. `siblings` are all adapters in the registry.

        Raises:
            UsageError: the server does not support adapters, must be restarted first, or a file is missing.
            ModelError: the server refuses, or cannot be asked.
        """
        folder = Path(adapter.adapter_path)
        if not (folder / "adapter_config.json").exists():
            raise UsageError(
                f"{folder or 'the folder of ' + adapter.model_tag} holds no adapter",
                hint="train it again with `cra train`",
            )
        if self.models.provider == "ollama":
            return self._serve_in_ollama(adapter, convert, base_gguf)
        kind = self.server.version()
        if kind.startswith("vLLM"):
            return self._serve_in_vllm(adapter, folder)
        if kind.startswith("llama-server"):
            return self._llama_server(adapter, convert, base_gguf, siblings)
        raise UsageError(
            f"{kind} at {self.models.base_url} does not support adapters",
            hint="Ollama, vLLM and llama-server can",
        )

    def _serve_in_ollama(self, adapter: AdapterRow, convert: Convert, base_gguf: Path | None) -> Served:
        base, without = adapter.base_model, f"{adapter.model_tag}-control"
        merged, control = (
            _require_file(_gguf_path(adapter).with_name(name), _gguf_path(adapter), convert, base_gguf)
            for name in ("merged.gguf", "control.gguf")
        )
        size = merged.stat().st_size + control.stat().st_size
        self.say(f"Ollama takes whole models: {size / 1e9:.1f} GB on its disk, half of it for the control")
        create_in_ollama(self.models, without, base, control, self.progress)
        create_in_ollama(self.models, adapter.model_tag, base, merged, self.progress)
        note = "Ollama keeps one of a base and its variants loaded: prompts of one stage are asked together"
        return Served(tag=adapter.model_tag, control=without, note=note)

    def _serve_in_vllm(self, adapter: AdapterRow, folder: Path) -> Served:
        load_into_vllm(self.models, adapter.model_tag, folder, key=self.key)
        return Served(
            tag=adapter.model_tag,
            control=adapter.base_model,
            note=f"to have it after a restart: --lora-modules {shlex.quote(f'{adapter.model_tag}={folder}')}",
        )

    def _llama_server(
        self, adapter: AdapterRow, convert: Convert, base_gguf: Path | None, siblings: Iterable[AdapterRow]
    ) -> Served:
        weights = str(base_gguf or llama_server_weights(self.models, adapter.base_model, key=self.key))
        if not weights:
            raise UsageError(
                "llama-server does not say which model file it serves", hint="name it with --base-gguf"
            )
        require_gguf(adapter, convert, Path(weights))
        preset = private_folder(self.workspace.adapters) / PRESET
        entries = {each.model_tag: _gguf_path(each) for each in siblings if _gguf_path(each).exists()}
        text = preset_text(adapter.base_model, weights, {**entries, adapter.model_tag: _gguf_path(adapter)})
        atomic_write(preset, text)
        try:
            self.server.show(adapter.model_tag)
        except ModelNotFound as exc:
            raise UsageError(
                f"llama-server has not loaded {name_of(adapter)} yet; {preset} tells it to",
                hint=f"restart it: llama-server --models-preset {shlex.quote(str(preset))} (or with -m "
                f"{shlex.quote(weights)} --lora {shlex.quote(str(_gguf_path(adapter)))} --lora-init-without-apply), "
                "then give the command again",
            ) from exc
        return Served(tag=adapter.model_tag, control=adapter.base_model)


def tag_for(provider: str, base: str, prompt: str, version: int) -> str:
    """The tag under which the n-th adapter for a prompt answers."""
    name = f"{prompt}-v{version}"
    if provider == "ollama":
        return f"{base}-{name}" if ":" in base else f"{base}:{name}"
    return f"{base}{MARK}{name}"


def name_of(adapter: AdapterRow) -> str:
    """The adapter's name without its base: `<prompt>-v<n>`."""
    place = adapter.model_tag.rfind(f"{adapter.stage_name}-v")
    return adapter.model_tag[max(place, 0) :]


def preset_text(base: str, weights: str, adapters: dict[str, Path]) -> str:
    """The preset of a llama-server in router mode: a section for the base and each adapter, so that none share a slot."""
    lines = [
        "; Written by `cra adapters`: llama-server --models-preset THIS-FILE",
        "",
        f"[{base}]",
        f"model = {weights}",
    ]
    for tag, gguf in sorted(adapters.items()):
        lines += ["", f"[{tag}]", f"model = {weights}", f"lora = {gguf}", "lora-init-without-apply = true"]
    return "\n".join(lines) + "\n"


def require_gguf(adapter: AdapterRow, convert: Convert, base_gguf: Path) -> Path:
    """The adapter's GGUF, converted unless it was before."""
    return _require_file(_gguf_path(adapter), _gguf_path(adapter), convert, base_gguf)


def _gguf_path(adapter: AdapterRow) -> Path:
    return Path(adapter.adapter_path or "/nowhere") / f"{name_of(adapter)}.gguf"


def _require_file(path: Path, gguf: Path, convert: Convert, base_gguf: Path | None) -> Path:
    """The file at `path`, which is created together with the adapter's GGUF."""
    if path.exists():
        return path
    if base_gguf is None:
        raise UsageError(
            f"{path.name} has not been converted from {path.parent} yet",
            hint="name the GGUF file that the base model is served from, with --base-gguf",
        )
    convert(gguf, base_gguf)
    if not path.exists():
        raise UsageError(
            f"{base_gguf} is in a quantisation that cannot be written, so that no merged model can be made of it",
            hint="serve the base in Q8_0, Q4_0 to Q5_1 or F16, or with llama-server or vLLM",
        )
    return path


class Deployer(Struct, frozen=True, kw_only=True):
    """Changes which adapter is used for a prompt, in one repository."""

    workspace: Workspace
    record: Record
    roles: Mapping[str, Role]
    """Of each prompt."""

    def deploy(self, adapter: AdapterRow, *, evaluation_id: int | None, reason: str = "") -> DeploymentRow:
        """Use the adapter for its prompt; the server has it already.

        Raises:
            UsageError: it is already in use, or the configuration cannot be changed.
        """
        with hold(self.workspace.adapters_lock, what="the adapters"):
            replaced = self.in_force().get(adapter.stage_name, "")
            if replaced == adapter.model_tag:
                raise UsageError(f"{adapter.model_tag} already answers {adapter.stage_name}")
            return self._change_deployment(
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

    def retire(self, adapter: AdapterRow) -> DeploymentRow:
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
            return self._change_deployment(
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

    def _change_deployment(self, row: DeploymentRow) -> DeploymentRow:
        path = self.workspace.config
        content = path.read_bytes()
        file = decode(content, max_bytes=len(content))
        text = with_value(file.text, TABLE.split("."), row.stage_name, row.tag or None)
        # In this order: what was announced and not done is seen later, what was done unannounced could not be undone.
        self.record.write(ADAPTER_DEPLOYMENTS.insert, row)
        atomic_write(path, file.encode(text), private=True)
        self.tell_who_is_in_force()
        return row


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
