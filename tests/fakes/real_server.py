"""A real llama.cpp server with a real model file, where the environment names them; see protocols/measuring.md."""

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from tests.fakes.patience import PATIENCE

PROGRAM = os.environ.get("CRA_LLAMA_SERVER", "")
"""A `llama-server`, or a python that has llama-cpp-python's server."""
MODEL = os.environ.get("CRA_LLAMA_MODEL", "")
"""A GGUF file; random weights are good enough."""
WINDOW = 4096
TAG = "under-test"


@dataclass(frozen=True, slots=True, kw_only=True)
class RealServer:
    """A server that runs."""

    base_url: str
    is_binary: bool
    """llama-server itself, and not llama-cpp-python's."""

    @property
    def models_table(self) -> dict[str, Any]:
        """What `[models]` says of it."""
        table = {
            "provider": "openai",
            "base_url": self.base_url,
            "coding": TAG,
            "reasoning": TAG,
            "retries": 0,
        }
        return table if self.is_binary else table | {"schema_dialect": "json_object", "streaming": False}


@contextlib.contextmanager
def running(log: Path) -> Iterator[RealServer]:
    """The server of the environment, gone afterwards; what it prints is in `log`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = RealServer(
        base_url=f"http://127.0.0.1:{port}", is_binary="python" not in Path(PROGRAM).name.lower()
    )
    with log.open("wb") as out, subprocess.Popen(_command(server, port), stdout=out, stderr=out) as process:
        try:
            _wait(server, process, log)
            yield server
        finally:
            process.terminate()


def _command(server: RealServer, port: int) -> list[str]:
    where = ["--host", "127.0.0.1", "--port", str(port), "--model", MODEL]
    if server.is_binary:
        return [PROGRAM, *where, "--alias", TAG, "--ctx-size", str(WINDOW), "--parallel", "1", "--jinja"]
    return [PROGRAM, "-m", "llama_cpp.server", *where, "--model_alias", TAG, "--n_ctx", str(WINDOW)]


def _wait(server: RealServer, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{server.base_url}/v1/models", trust_env=False).status_code == httpx.codes.OK:
                return
        time.sleep(0.1)
    raise AssertionError(f"the server did not start:\n{log.read_text(errors='replace')[-2000:]}")
