"""Adapters on model servers: how each kind of server gets one, and what requests must say about those it has.

- Ollama gets a complete model: the merged GGUF is uploaded, and a model is created from it with the base's template and
  parameters.
- vLLM loads a PEFT folder under a name at run time, if it was started with that option.
- llama-server loads adapters when it starts; nothing can be sent to it.

Doing it again does no harm.

llama-server numbers the adapters that it has loaded (`--lora FILE`). A request gives the scale of each; if it names
none, all that are loaded apply at full scale, even after `--lora-init-without-apply`. So each request to such a server
names all of them, even for the base. Example, with adapters 0 and 1 loaded: the base is asked with 0 and 1 at scale 0,
adapter 1 with 0 at scale 0 and 1 at scale 1.

The server caches earlier prompts in slots, and may reuse that cache for another adapter although it was computed with
the first (llama.cpp#26207). So a request after one with another adapter must not use the cache; and if several requests
run concurrently, which may share a slot in any order, none may once an adapter is in use. In router mode each adapter
is a model of its own, with slots of its own: nothing is shared, and the cache is used.
"""

import hashlib
import shlex
import threading
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Annotated, Any
from urllib.parse import quote

import httpx
from msgspec import Meta, Struct

from clean_room_agent.errors import ModelError, ModelNotFound, ServerFailed, ServerUnreachable, UsageError
from clean_room_agent.llm.model_config import ModelsConfig
from clean_room_agent.llm.transports import server_errors
from clean_room_agent.llm.transports.connections import open_client
from clean_room_agent.llm.transports.http import HttpServer
from clean_room_agent.llm.transports.server_errors import OLLAMA, OPENAI, RequestTarget
from clean_room_agent.safe_open import open_named

MARK = "+"
"""Stands in a tag between the base and its adapter."""
CREATE_SECONDS = 1800.0
"""Ollama reads, hashes and copies a model of some gigabytes."""


class LoadedAdapter(Struct, frozen=True, kw_only=True):
    """One adapter, as llama-server lists it."""

    id: Annotated[int, Meta(ge=0, lt=2**31)]
    path: str

    @property
    def name(self) -> str:
        """The name by which a tag refers to it."""
        return PurePath(self.path).stem


AdapterList = tuple[LoadedAdapter, ...]
"""What `/lora-adapters` answers."""


class _TagMeaning(Struct, frozen=True, kw_only=True):
    """What a tag means on a server that loaded adapters for its model."""

    model: str
    scales: tuple[tuple[int, float], ...]
    """The scale of each loaded adapter, by its number."""


class LoraTags:
    """What requests must say about adapters. Thread-safe."""

    def __init__(self, ask: Callable[[str], tuple[str, AdapterList] | None], *, parallel: bool) -> None:
        """`ask` returns a tag's model, as the server lists it, and its adapters, or None for a server that loads none;
        it raises if that cannot be found out now. `parallel`: whether requests overlap.
        """
        self._ask = ask
        self._parallel = parallel
        self._lock = threading.Lock()
        self._known: dict[str, _TagMeaning | None] = {}
        self._last: dict[str, str] = {}
        """The tag of the last request to each model of the server."""
        self._shared: set[str] = set()
        """The models that were asked with an adapter, under another tag than their own."""

    def model(self, tag: str) -> str:
        """The model that the tag's adapter is for, as the server lists it; the tag itself if it names no adapter.

        Raises:
            ModelError: the server does not have the adapter, or cannot be asked.
        """
        found = self._tag_meaning(tag)
        return tag if found is None else found.model

    def fields(self, tag: str) -> dict[str, Any]:
        """The fields of a request.

        Raises:
            ModelError: the server does not have the adapter, or cannot be asked.
        """
        found = self._tag_meaning(tag)
        if found is None:
            return {}
        scales = found.scales
        with self._lock:
            if tag != found.model:
                self._shared.add(found.model)
            switched = self._last.setdefault(found.model, tag) != tag
            self._last[found.model] = tag
            anew = found.model in self._shared and (switched or self._parallel)
        named = {"lora": [{"id": number, "scale": scale} for number, scale in scales]} if scales else {}
        return named | ({"cache_prompt": False} if anew else {})

    def _tag_meaning(self, tag: str) -> _TagMeaning | None:
        """What the tag means; None if the server loaded no adapters, since other servers' models may have the marker in
        their names.
        """
        if tag not in self._known:
            self._known[tag] = self._find_tag_meaning(tag)
        return self._known[tag]

    def _find_tag_meaning(self, tag: str) -> _TagMeaning | None:
        answer = self._ask(tag)
        if answer is None:
            return None
        model, loaded = answer
        numbers = {each.name: each.id for each in loaded}
        name = tag.partition(MARK)[2]
        if name and name not in numbers:
            there = f"it has {', '.join(sorted(numbers))}" if numbers else "it has none"
            raise ModelNotFound(
                f"llama-server has not loaded the adapter {name} for {tag.partition(MARK)[0]}: {there}",
                hint="restart it with the preset that `cra adapters evaluate` or `deploy` wrote",
            )
        chosen = numbers.get(name)
        scales = tuple((number, float(number == chosen)) for number in sorted(numbers.values()))
        return _TagMeaning(model=model, scales=scales)


class _Shown(Struct, frozen=True, kw_only=True):
    template: str = ""
    parameters: str = ""
    system: str = ""


def create_in_ollama(
    config: ModelsConfig, tag: str, base: str, gguf: Path, progress: Callable[[int, int], None]
) -> None:
    """Create the complete model under the tag on the server, with the base's template, parameters and system text.

    Raises:
        ModelError: the server refuses it, or does not have the base.
    """
    server = HttpServer(open_client(config, config.base_url), config.timeouts)
    target = RequestTarget(server=config.base_url, tag=tag, dialect=OLLAMA)
    of_base = RequestTarget(server=config.base_url, tag=base, dialect=OLLAMA)

    def require(status: int, text: str) -> None:
        if status not in {httpx.codes.OK, httpx.codes.CREATED}:
            raise server_errors.reported(target, status, text)[0]

    shown = server.ask("POST", "/api/show", _Shown, of_base, payload={"model": base})
    size, digest = gguf.stat().st_size, f"sha256:{digest_of(gguf)}"
    progress(0, size)
    blob = f"/api/blobs/{digest}"
    if server.tell("HEAD", blob, target)[0] != httpx.codes.OK:
        require(*server.tell("POST", blob, target, file=gguf, seconds=CREATE_SECONDS))
    progress(size, size)
    made: dict[str, Any] = {"model": tag, "files": {"model.gguf": digest}, "stream": False}
    told = {"template": shown.template, "system": shown.system, "parameters": parameters_of(shown.parameters)}
    made |= {name: value for name, value in told.items() if value}
    require(*server.tell("POST", "/api/create", target, payload=made, seconds=CREATE_SECONDS))


def load_into_vllm(config: ModelsConfig, name: str, folder: Path, *, key: str = "") -> None:
    """Load the PEFT adapter in the folder into vLLM under this name; vLLM must be able to read the folder.

    Raises:
        ModelError: it refuses, or was not started with adapters enabled.
    """
    server, target = _openai_server(config, name, key)
    payload = {"lora_name": name, "lora_path": str(folder)}
    status, text = server.tell(
        "POST", "/v1/load_lora_adapter", target, payload=payload, seconds=config.timeouts.first_byte
    )
    if status == httpx.codes.OK or "already been loaded" in text:
        return
    if status in {httpx.codes.NOT_FOUND, httpx.codes.METHOD_NOT_ALLOWED} and "lora" not in text.lower():
        raise UsageError(
            f"vLLM at {config.base_url} does not load adapters at run time",
            hint="start it with VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 and --enable-lora, or with "
            f"--lora-modules {shlex.quote(f'{name}={folder}')}",
        )
    raise ServerFailed(
        f"vLLM at {config.base_url} refuses the adapter {name}: {text[:300]}",
        hint=f"it must be able to read {folder}, and its --max-lora-rank must not be below the adapter's rank",
    )


def parameters_of(text: str) -> dict[str, Any]:
    """A model's parameters as /api/create takes them, from the lines of /api/show; a name that is twice there has a list."""
    found: dict[str, list[Any]] = {}
    for line in text.splitlines():
        name, _, value = line.strip().partition(" ")
        if name and value.strip():
            found.setdefault(name, []).append(_parse_value(value.strip()))
    return {
        name: values if name == "stop" or len(values) > 1 else values[0] for name, values in found.items()
    }


def _parse_value(text: str) -> Any:
    if text.startswith('"') and text.endswith('"') and len(text) > 1:
        return text[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text, text)


def digest_of(path: Path) -> str:
    """The hex SHA-256 of a file."""
    with open_named(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _openai_server(config: ModelsConfig, tag: str, key: str) -> tuple[HttpServer, RequestTarget]:
    client = open_client(config, config.base_url.removesuffix("/v1"), key=key)
    target = RequestTarget(server=config.base_url, tag=tag, dialect=OPENAI)
    return HttpServer(client, config.timeouts, secret=key), target


class _ModelFile(Struct, frozen=True, kw_only=True):
    model_path: str = ""


def llama_server_weights(config: ModelsConfig, tag: str, *, key: str = "") -> str:
    """The file from which llama-server serves the model; "" if it does not say.

    Raises:
        ServerUnreachable: nobody answers.
    """
    server, target = _openai_server(config, tag, key)
    try:
        return server.ask("GET", f"/props?model={quote(tag)}", _ModelFile, target).model_path
    except ServerUnreachable:
        raise
    except ModelError:
        return ""
