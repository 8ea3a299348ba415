"""Trained models on their way into servers that take them, and into those that refuse."""

import hashlib
from pathlib import Path

import pytest
from testing.client.model_client import models_config
from testing.servers.ollama_server import OllamaServer
from testing.servers.openai_server import OpenAiServer

from clean_room_agent.errors import ModelNotFound, ServerFailed, ServerUnreachable, UsageError
from clean_room_agent.llm.transports.adapter_registration import (
    create_in_ollama,
    load_into_vllm,
    parameters_of,
)

CONTENT = b"GGUF" + bytes(range(256)) * 5000
DIGEST = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(CONTENT)
    return path


def quiet(_done: int, _total: int) -> None:
    """No progress."""


def test_a_merged_model_has_the_bases_template_and_parameters(gguf: Path) -> None:
    with OllamaServer([], version="0.34.1") as server:
        config = models_config(server.base_url)
        create_in_ollama(config, "coder:3b-v1", "coder:3b", gguf, quiet)
        assert server.blobs == {DIGEST: CONTENT}
        assert server.created == [
            {
                "model": "coder:3b-v1",
                "files": {"model.gguf": DIGEST},
                "template": "{{ .Prompt }}",
                "parameters": {"stop": ["<|im_start|>", "<|im_end|>"], "top_p": 0.9},
                "stream": False,
            }
        ]
        assert "coder:3b-v1" in server.models


def test_what_was_uploaded_is_not_sent_again(gguf: Path) -> None:
    with OllamaServer([], version="0.34.1") as server:
        config = models_config(server.base_url)
        for tag in ("a:1", "a:2"):
            create_in_ollama(config, tag, "coder:3b", gguf, quiet)
        assert [path for path in server.state.paths if "blobs" in path] == [f"/api/blobs/{DIGEST}"]


def test_refusals_are_told(gguf: Path) -> None:
    with OllamaServer([], version="0.34.1") as server:
        config = models_config(server.base_url)
        with pytest.raises(ModelNotFound, match="absent:1"):
            create_in_ollama(config, "a:1", "absent:1", gguf, quiet)
        assert server.created == []
    with pytest.raises(ServerUnreachable):
        create_in_ollama(config, "a:1", "coder:3b", gguf, quiet)


def test_vllm_loads_a_folder_under_a_name_once(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text("{}")
    with OpenAiServer([], kind="vllm") as server:
        config = models_config(server.base_url, provider="openai")
        load_into_vllm(config, "scope-1", tmp_path)
        load_into_vllm(config, "scope-1", tmp_path)
        assert server.models[-1] == "scope-1"
        assert server.models.count("scope-1") == 1


def test_vllm_says_why_not(tmp_path: Path) -> None:
    with OpenAiServer([], kind="vllm") as server, pytest.raises(ServerFailed, match="No adapter found"):
        load_into_vllm(models_config(server.base_url, provider="openai"), "scope-1", tmp_path)
    with OpenAiServer([], kind="vllm", registers=False) as server:
        with pytest.raises(UsageError, match="does not load adapters at run time") as caught:
            load_into_vllm(models_config(server.base_url, provider="openai"), "scope-1", tmp_path)
        assert "VLLM_ALLOW_RUNTIME_LORA_UPDATING=1" in caught.value.hint


def test_parameters_are_read() -> None:
    text = 'stop    "<|a b|>"\nnum_ctx 4096\ntemperature 0.7\nuse_mmap true\nstop "\\"x"'
    assert parameters_of(text) == {
        "stop": ["<|a b|>", '"x'],
        "num_ctx": 4096,
        "temperature": 0.7,
        "use_mmap": True,
    }
