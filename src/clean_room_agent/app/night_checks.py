"""What `cra tonight` checks before it begins anything: the base, the trainer's Python, the server, the disk."""

import json
import os
import shutil
from pathlib import Path

from msgspec import Struct

from clean_room_agent import proc
from clean_room_agent.app import wiring
from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.model_server import open_server
from clean_room_agent.app.open_adapters import open_adapters
from clean_room_agent.app.prompts import FILL
from clean_room_agent.app.settings import Settings
from clean_room_agent.artifacts.names import new_task_id
from clean_room_agent.db.raw.record import Record
from clean_room_agent.errors import CommandError, UsageError
from clean_room_agent.llm.model_config import ModelsConfig
from clean_room_agent.llm.transports.lora import llama_server_weights
from clean_room_agent.training import convert
from clean_room_agent.training.train import EXTRA_HINT, Machine
from clean_room_agent.training.train_plan import SIZE
from clean_room_agent.training.training_time import parameters_of
from clean_room_agent.workspace import Workspace

DISK_BYTES = (1_000_000_000, 8)
"""What is needed free, and for each parameter: the base is written twice to prove a conversion, once as float32."""
PROBE = """
import importlib.util, json, sys
sys.path[:] = [entry for entry in sys.path if entry]
missing = [name for name in ("torch", "transformers", "trl", "peft", "datasets") if importlib.util.find_spec(name) is None]
gpu = False
if not missing and sys.argv[1] != "cpu":
    import torch
    gpu = torch.cuda.is_available()
print("@" + json.dumps({"missing": missing, "gpu": gpu}))
"""
PROBE_SECONDS = 120.0


class Ready(Struct, frozen=True, kw_only=True):
    """What was found before anything was begun."""

    parameters: int
    """Of the base."""
    gpu: bool
    fills: bool
    """Whether the model fills gaps."""
    program: str = ""
    """The llama-server to start for the gate; "": the configured server can be given the adapter."""
    weights: Path | None = None
    """The base's GGUF file."""


def require_ready(
    workspace: Workspace, settings: Settings, base: Path, machine: Machine, server: str
) -> Ready:
    """What is there for a night, which would otherwise be found missing in the middle of it.

    Raises:
        UsageError: something is missing, or does not fit the configured model.
        ModelError: the server cannot be asked, or lacks a model.
    """
    parameters = parameters_of(base)
    models = settings.models.for_role("coding")
    tag = models.tag_of("coding")
    size = SIZE.search(tag)
    if size and not 0.5 < parameters / (float(size[1]) * 1e9) < 2:
        raise UsageError(
            f"{base} has {parameters / 1e9:.2g}B parameters, so it is not the model {tag} that [models] coding names",
            hint="name that model's weights with --base",
        )
    least, each = DISK_BYTES
    need = least + each * parameters
    free = shutil.disk_usage(workspace.repo).free
    if free < need:
        raise UsageError(
            f"about {need / 1e9:.1f} GB of disk are needed, and {free / 1e9:.1f} GB are free at {workspace.repo}"
        )
    gpu = _has_gpu(machine)
    program, weights = _require_server(settings, models, base, server)
    return Ready(
        parameters=parameters,
        gpu=gpu,
        fills=_can_fill_gaps(workspace, settings),
        program=program,
        weights=weights,
    )


def _has_gpu(machine: Machine) -> bool:
    """Whether the trainer's Python has a GPU. Raises UsageError if it lacks a library."""
    said = _run_once((machine.python, "-c", PROBE, machine.device), hint=EXTRA_HINT)
    found = json.loads(said.rpartition("@")[2])
    if found["missing"]:
        missing = ", ".join(found["missing"])
        raise UsageError(f"cannot train: {machine.python} has no {missing}", hint=EXTRA_HINT)
    return bool(found["gpu"])


def _require_server(
    settings: Settings, models: ModelsConfig, base: Path, server: str
) -> tuple[str, Path | None]:
    """The llama-server to start for the gate ("": none is), and the base's GGUF file, if one is needed."""
    wiring.require_models(settings, wiring.live_transport)
    kind = "Ollama" if models.provider == "ollama" else open_server(models).version()
    if kind.startswith("vLLM"):
        return "", None
    if kind != "Ollama" and not kind.startswith("llama-server"):
        raise UsageError(
            f"{kind} at {models.base_url} does not support adapters", hint="Ollama, vLLM and llama-server can"
        )
    convert.require_extra()
    key = os.environ.get(models.api_key_env or "", "")
    served = (
        Path(llama_server_weights(models, models.coding, key=key) or "/nowhere") if kind != "Ollama" else base
    )
    weights = served if served.is_file() else base
    if not weights.is_file():
        raise UsageError(
            f"{kind} needs the base's GGUF file to build on, and does not say where it is",
            hint="name that file with --base",
        )
    if kind == "Ollama":
        return "", weights
    program = proc.absolute_program(server, os.environ)
    if not os.access(program, os.X_OK) or "/" not in program:
        raise UsageError(
            f"the gate needs a llama-server with the adapter, and there is no program {server}",
            hint="name it: --server PATH; or put it on PATH",
        )
    program = str(Path(program).absolute())
    _run_once((program, "--version"), hint="name one that runs: --server PATH")
    return program, weights


def _run_once(command: tuple[str, ...], *, hint: str) -> str:
    try:
        return proc.run(command, cwd=Path("/"), timeout=PROBE_SECONDS).stdout.decode()
    except CommandError as exc:
        raise UsageError(exc.message, hint=hint) from exc


def _can_fill_gaps(workspace: Workspace, settings: Settings) -> bool:
    """Whether runs ask the coding model for the text of gaps."""
    if "masked" not in settings.solve.forms:
        return False
    models = settings.models
    Record.open(workspace.repo, clock=utc_now).close()  # there may be none yet
    with open_adapters(workspace.repo) as parts:
        arm = parts.arm(FILL, models.tag_of("coding"), open_server(models.for_role("coding")))
        return arm.models.can_fill(pass_id=new_task_id())


def without_adapters(settings: Settings) -> Settings:
    """The settings of the bases: an adapter is trained on, and compared with, what has none."""
    table = {name: value for name, value in settings.data["models"].items() if name != "overrides"}
    return Settings(source=settings.source, data={**settings.data, "models": table})
