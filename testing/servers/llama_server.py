"""A real llama.cpp server with a real model file, by default those that the environment names; `packaged_models` has some."""

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from msgspec import Struct

from testing.patience import PATIENCE

PROGRAM = os.environ.get("CRA_LLAMA_SERVER", "")
"""A `llama-server`, or a python that has llama-cpp-python's server."""
MODEL = os.environ.get("CRA_LLAMA_MODEL", "")
"""A GGUF file; random weights are good enough."""
WINDOW = 4096
TAG = "under-test"


class RealServer(Struct, frozen=True, kw_only=True):
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
def running(
    log: Path,
    *more: str,
    program: str = PROGRAM,
    model: str = MODEL,
    alias: str = TAG,
    window: int = WINDOW,
    slots: int = 1,
    threads: int = 0,
    port: int = 0,
) -> Iterator[RealServer]:
    """A server, by default the environment's, with `more` arguments, gone afterwards; what it prints is in `log`. It calls
    the model `alias`. Each of its `slots` has the whole `window`. `threads` and `port`: 0 leaves them to the server and the
    system.
    """
    if not port:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
    server = RealServer(
        base_url=f"http://127.0.0.1:{port}", is_binary="python" not in Path(program).name.lower()
    )
    where = ["--host", "127.0.0.1", "--port", str(port), "--model", model]
    if server.is_binary:
        context = ["--ctx-size", str(window * slots), "--parallel", str(slots)]  # the slots share it
        command = [program, *where, "--alias", alias, *context, "--jinja"]
        command += ["--threads", str(threads)] if threads else []
    else:
        command = [program, "-m", "llama_cpp.server", *where, "--model_alias", alias, "--n_ctx", str(window)]
    with log.open("wb") as out, subprocess.Popen([*command, *more], stdout=out, stderr=out) as process:
        try:
            _wait(server, process, log)
            yield server
        finally:
            process.terminate()


def _wait(server: RealServer, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{server.base_url}/v1/models", trust_env=False).status_code == httpx.codes.OK:
                return
        time.sleep(0.1)
    raise AssertionError(f"the server did not start:\n{log.read_text(errors='replace')[-2000:]}")
