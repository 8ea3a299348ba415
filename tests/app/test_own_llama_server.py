"""A llama-server of our own: it answers in the block, and has ended afterwards, whatever happens."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from testing.client.model_client import models_config
from testing.patience import wait_until

from clean_room_agent.app.model_server import connect
from clean_room_agent.app.own_llama_server import own_llama_server
from clean_room_agent.errors import ServerFailed

PATHS = [str(Path(__file__).parents[2]), *(entry for entry in sys.path if entry)]
SERVER = f"""\
#!{sys.executable}
import os, pathlib, signal, sys
sys.path[:0] = {PATHS!r}
from testing.servers.openai_server import OpenAiServer

given = dict(zip(sys.argv[1:], sys.argv[2:]))
pathlib.Path(given["--pid"]).write_text(str(os.getpid()))
with OpenAiServer([], models=("m",), adapters=(given["--lora"],), port=int(given["--port"])):
    signal.pause()
"""
USER = f"""\
import sys, time
sys.path[:0] = {PATHS!r}
from testing.client.model_client import models_config
from clean_room_agent.app.own_llama_server import own_llama_server
with own_llama_server(sys.argv[1], tuple(sys.argv[2:]), models_config(), "m+a"):
    print("answers", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def given(tmp_path: Path) -> tuple[str, tuple[str, ...]]:
    """A program with its arguments."""
    program = tmp_path / "llama-server"
    program.write_text(SERVER)
    program.chmod(0o700)
    return str(program), ("--lora", "a.gguf", "--pid", str(tmp_path / "pid"))


def has_ended(folder: Path) -> bool:
    return not Path(f"/proc/{(folder / 'pid').read_text()}").exists()


def test_it_answers_in_the_block_and_has_ended_after_an_interruption(
    given: tuple[str, tuple[str, ...]], tmp_path: Path
) -> None:
    models = models_config()
    with pytest.raises(KeyboardInterrupt), own_llama_server(*given, models, "m+a") as address:  # noqa: PT012
        own = models_config(provider="openai", base_url=address)
        assert connect(own).show("m+a").tag == "m+a"
        assert not has_ended(tmp_path)
        raise KeyboardInterrupt
    assert has_ended(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing tells it")
def test_it_ends_with_a_process_that_is_killed(given: tuple[str, tuple[str, ...]], tmp_path: Path) -> None:
    command = (sys.executable, "-c", USER, given[0], *given[1])
    with subprocess.Popen(command, stdout=subprocess.PIPE) as user:
        assert user.stdout is not None
        assert user.stdout.readline() == b"answers\n"
        os.kill(user.pid, signal.SIGKILL)
    wait_until(lambda: has_ended(tmp_path), "the end of the server")


def test_a_program_that_ends_is_told_with_its_last_words(tmp_path: Path) -> None:
    program = tmp_path / "llama-server"
    program.write_text("#!/bin/sh\necho no such device >&2\nexit 1\n")
    program.chmod(0o700)
    with (
        pytest.raises(ServerFailed, match="no such device"),
        own_llama_server(str(program), (), models_config(), "m+a"),
    ):
        pass
