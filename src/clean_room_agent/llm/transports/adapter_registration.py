"""Registers a trained model with the server that should run it, in each server's own way.

- Ollama from 0.34.1 on takes only complete models: the merged GGUF is uploaded, and a model is created from it with the
  base's template and parameters. Older versions take the adapter as a GGUF on top of the base.
- vLLM loads a PEFT folder under a name at run time, if it was started with that option.
- llama-server loads adapters when it starts; nothing can be sent to it.

Doing it again does no harm.
"""

import hashlib
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from msgspec import Struct

from clean_room_agent.errors import ModelError, ServerFailed, ServerUnreachable, UsageError
from clean_room_agent.llm.config import ModelsConfig
from clean_room_agent.llm.transports import server_errors
from clean_room_agent.llm.transports.connections import open_client
from clean_room_agent.llm.transports.http import HttpServer
from clean_room_agent.llm.transports.server_errors import OLLAMA, OPENAI, Target
from clean_room_agent.safe_open import open_named

MERGED_ONLY = (0, 34, 1)
"""The first release of Ollama that refuses adapters."""
CREATE_SECONDS = 1800.0
"""Ollama reads, hashes and copies a model of some gigabytes."""
CHUNK = 1 << 20


class _Version(Struct, frozen=True, kw_only=True):
    version: str


class _Shown(Struct, frozen=True, kw_only=True):
    template: str = ""
    parameters: str = ""
    system: str = ""


class OllamaRegistry:
    """The models of an Ollama server."""

    def __init__(self, config: ModelsConfig) -> None:
        self._server = config.base_url
        self._http = HttpServer(open_client(config, config.base_url), config.timeouts)

    def takes_adapters(self) -> bool:
        """Whether the server is old enough to put an adapter on a base.

        Raises:
            ModelError: the server cannot be asked.
        """
        return (
            release_of(self._http.ask("GET", "/api/version", _Version, self._target("")).version)
            < MERGED_ONLY
        )

    def create_merged(self, tag: str, base: str, gguf: Path, progress: Callable[[int, int], None]) -> None:
        """Create the complete model under the tag on the server, with the base's template, parameters and system text.

        Raises:
            ModelError: the server refuses it, or does not have the base.
        """
        shown = self._http.ask("POST", "/api/show", _Shown, self._target(base), payload={"model": base})
        made: dict[str, Any] = {"model": tag, "files": {"model.gguf": self._upload(tag, gguf, progress)}}
        told = {"template": shown.template, "system": shown.system}
        made |= {name: text for name, text in told.items() if text}
        if parameters := parameters_of(shown.parameters):
            made["parameters"] = parameters
        self._create(tag, made)

    def create_adapted(self, tag: str, base: str, gguf: Path, progress: Callable[[int, int], None]) -> None:
        """Create the base with the adapter under the tag on the server.

        Raises:
            ModelError: the server refuses it, or does not have the base.
        """
        files = {"adapter.gguf": self._upload(tag, gguf, progress)}
        self._create(tag, {"model": tag, "from": base, "adapters": files})

    def _upload(self, tag: str, gguf: Path, progress: Callable[[int, int], None]) -> str:
        size, digest = gguf.stat().st_size, f"sha256:{digest_of(gguf)}"
        target, path = self._target(tag), f"/api/blobs/{digest}"
        progress(0, size)
        status, _ = self._http.tell("HEAD", path, target)
        if status != httpx.codes.OK:
            self._require(tag, *self._http.tell("POST", path, target, file=gguf, seconds=CREATE_SECONDS))
        progress(size, size)
        return digest

    def _create(self, tag: str, payload: dict[str, Any]) -> None:
        whole = {**payload, "stream": False}
        target = self._target(tag)
        answer = self._http.tell("POST", "/api/create", target, payload=whole, seconds=CREATE_SECONDS)
        if "no longer supported" in answer[1]:
            raise ServerFailed(
                f"{self._server} refuses adapters: {answer[1][:200]}",
                hint="this version needs the merged model, but the server reports an older version",
            )
        self._require(tag, *answer)

    def _require(self, tag: str, status: int, text: str) -> None:
        if status not in {httpx.codes.OK, httpx.codes.CREATED}:
            raise server_errors.reported(self._target(tag), status, text)[0]

    def _target(self, tag: str) -> Target:
        return Target(server=self._server, tag=tag, dialect=OLLAMA)


def load_into_vllm(config: ModelsConfig, name: str, folder: Path, *, key: str = "") -> None:
    """Load the PEFT adapter in the folder into vLLM under this name; vLLM must be able to read the folder.

    Raises:
        ModelError: it refuses, or was not started with adapters enabled.
    """
    server = HttpServer(
        open_client(config, config.base_url.removesuffix("/v1"), key=key), config.timeouts, secret=key
    )
    target = Target(server=config.base_url, tag=name, dialect=OPENAI)
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


def release_of(version: str) -> tuple[int, ...]:
    """The numbers of a release, such as (0, 34, 1), without any suffix."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    if found is None:
        raise ModelError(f"the server says that its version is {version!r}, which is not a number")
    return tuple(int(part) for part in found[0].split("."))


def parameters_of(text: str) -> dict[str, Any]:
    """A model's parameters as /api/create takes them, from the lines that /api/show returns; a name that occurs twice
    has a list of values.
    """
    found: dict[str, list[Any]] = {}
    for line in text.splitlines():
        name, _, value = line.strip().partition(" ")
        if name and value.strip():
            found.setdefault(name, []).append(_value(value.strip()))
    return {
        name: values if name == "stop" or len(values) > 1 else values[0] for name, values in found.items()
    }


def _value(text: str) -> Any:
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
    digest = hashlib.sha256()
    with open_named(path) as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


class _Props(Struct, frozen=True, kw_only=True):
    model_path: str = ""


def llama_server_weights(config: ModelsConfig, *, key: str = "") -> str:
    """The file of the model that llama-server has loaded; "" if it does not say.

    Raises:
        ServerUnreachable: nobody answers.
    """
    client = open_client(config, config.base_url.removesuffix("/v1"), key=key)
    server = HttpServer(client, config.timeouts, secret=key)
    try:
        return server.ask(
            "GET", "/props", _Props, Target(server=config.base_url, tag="", dialect=OPENAI)
        ).model_path
    except ServerUnreachable:
        raise
    except ModelError:
        return ""
