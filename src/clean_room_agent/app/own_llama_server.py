"""Runs a llama-server of our own, with an adapter, for as long as it is needed."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from clean_room_agent import proc
from clean_room_agent.app.model_server import connect
from clean_room_agent.cancellation import stopped_by
from clean_room_agent.errors import CommandError, ModelError, ServerFailed
from clean_room_agent.llm.model_config import ModelsConfig

START_SECONDS = 600.0
"""A large model is read from a slow disk."""
PAUSE_SECONDS = 0.2


@contextlib.contextmanager
def own_llama_server(
    program: str, arguments: tuple[str, ...], models: ModelsConfig, tag: str
) -> Iterator[str]:
    """In the block, the program runs on a free port and answers under the tag at the yielded address. It has ended
    afterwards, also if this process is killed (on Linux).

    Raises:
        ServerFailed: it ends, or does not answer in time.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = (program, "--host", "127.0.0.1", "--port", str(port), *arguments)
    own = replace(models, provider="openai", base_url=f"http://127.0.0.1:{port}")
    stop = threading.Event()
    words: list[str] = []

    def serve() -> None:
        with stopped_by(stop), contextlib.suppress(KeyboardInterrupt):
            try:
                ended = proc.run(command, cwd=Path("/"), timeout=None, check=False)
                words.append(ended.stderr.decode("utf-8", "replace").strip()[-proc.SHOWN :])
            except CommandError as exc:
                words.append(exc.message)

    thread = threading.Thread(target=serve, name="llama-server", daemon=True)
    thread.start()
    try:
        _wait_until_ready(own, tag, thread, words)
        yield own.base_url
    finally:
        stop.set()
        thread.join()


def _wait_until_ready(own: ModelsConfig, tag: str, thread: threading.Thread, words: list[str]) -> None:
    until = time.monotonic() + START_SECONDS
    last = ""
    while thread.is_alive() and time.monotonic() < until:
        try:
            connect(own).show(tag)
        except ModelError as exc:
            last = exc.message
            time.sleep(PAUSE_SECONDS)
        else:
            return
    raise ServerFailed(
        f"the llama-server that was started for the gate does not answer: {' '.join(words) or last}",
        hint="the same command goes on from here; --server names another program",
    )
