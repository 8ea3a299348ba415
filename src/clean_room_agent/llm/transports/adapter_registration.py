"""Registers a trained model with the server that should run it, in each server's own way.

- Ollama gets a complete model: the merged GGUF is uploaded, and a model is created from it with the base's template and
  parameters.
- vLLM loads a PEFT folder under a name at run time, if it was started with that option.
- llama-server loads adapters when it starts; nothing can be sent to it.

Doing it again does no harm.
"""

import hashlib
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
from clean_room_agent.llm.transports.server_errors import OLLAMA, OPENAI, RequestTarget
from clean_room_agent.safe_open import open_named

CREATE_SECONDS = 1800.0
"""Ollama reads, hashes and copies a model of some gigabytes."""
CHUNK = 1 << 20


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
    told = {
        "template": shown.template,
        "system": shown.system,
        "parameters": parameters_of(shown.parameters),
    }
    made |= {name: value for name, value in told.items() if value}
    require(*server.tell("POST", "/api/create", target, payload=made, seconds=CREATE_SECONDS))


def load_into_vllm(config: ModelsConfig, name: str, folder: Path, *, key: str = "") -> None:
    """Load the PEFT adapter in the folder into vLLM under this name; vLLM must be able to read the folder.

    Raises:
        ModelError: it refuses, or was not started with adapters enabled.
    """
    server = HttpServer(
        open_client(config, config.base_url.removesuffix("/v1"), key=key), config.timeouts, secret=key
    )
    target = RequestTarget(server=config.base_url, tag=name, dialect=OPENAI)
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


class _ModelFile(Struct, frozen=True, kw_only=True):
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
            "GET", "/props", _ModelFile, RequestTarget(server=config.base_url, tag="", dialect=OPENAI)
        ).model_path
    except ServerUnreachable:
        raise
    except ModelError:
        return ""
