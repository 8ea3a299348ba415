"""Adapters on each kind of server: registered, and named in requests."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from testing.client.chat_request import MODEL, chat_request
from testing.client.model_client import models_config
from testing.servers.ollama_server import OllamaServer
from testing.servers.openai_server import OpenAiServer

from clean_room_agent.errors import ModelNotFound, ServerFailed, ServerUnreachable, UsageError
from clean_room_agent.llm.transports.lora import (
    create_in_ollama,
    llama_server_weights,
    load_into_vllm,
    parameters_of,
)
from clean_room_agent.llm.transports.openai import OpenAiTransport, connect

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


@pytest.mark.parametrize("routes", [False, True])
def test_llama_server_tells_the_file_of_its_model_also_where_it_routes(routes: bool) -> None:
    with OpenAiServer([], models=("coder:3b",), routes=routes) as server:
        config = models_config(server.base_url, provider="openai")
        assert llama_server_weights(config, "coder:3b") == "/models/base.gguf"


def test_parameters_are_read() -> None:
    text = 'stop    "<|a b|>"\nnum_ctx 4096\ntemperature 0.7\nuse_mmap true\nstop "\\"x"'
    assert parameters_of(text) == {
        "stop": ["<|a b|>", '"x'],
        "num_ctx": 4096,
        "temperature": 0.7,
        "use_mmap": True,
    }


FILES = ("/a/scope-1.gguf", "/a/task-2.gguf")
NONE, FIRST, SECOND = (
    [{"id": 0, "scale": first}, {"id": 1, "scale": second}]
    for first, second in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0))
)


def said(tags: list[str], *, parallel: int = 1, **server: Any) -> list[tuple[str, Any, Any]]:
    """Model, adapters and whether the cache is used, of one request for each tag."""
    with OpenAiServer(lambda _: "hi", adapters=FILES, **server) as stand_in:
        transport = connected(stand_in, parallel=parallel)
        for tag in tags:
            assert transport.send(chat_request(model=_model(tag))).error is None
        return [(each["model"], each.get("lora"), each.get("cache_prompt")) for each in stand_in.requests]


def connected(server: OpenAiServer, *, parallel: int = 1) -> OpenAiTransport:
    return connect(models_config(server.base_url, provider="openai", parallel=parallel))


def _model(tag: str) -> Any:
    return replace(MODEL, tag=tag)


def test_the_base_alone_is_asked_without_the_adapters_that_are_loaded() -> None:
    assert said(["coder:3b"]) == [("coder:3b", NONE, None)]


def test_a_tag_with_an_adapter_asks_its_base_and_names_the_adapters_number() -> None:
    assert said(["coder:3b+task-2"]) == [("coder:3b", SECOND, None)]


def test_what_was_read_under_another_adapter_is_read_anew() -> None:
    base, first, second = ("coder:3b", "coder:3b+scope-1", "coder:3b+task-2")
    assert said([base, base, first, first, base, second]) == [
        ("coder:3b", NONE, None),
        ("coder:3b", NONE, None),
        ("coder:3b", FIRST, False),
        ("coder:3b", FIRST, None),
        ("coder:3b", NONE, False),
        ("coder:3b", SECOND, False),
    ]


def test_where_requests_overlap_nothing_is_taken_up_again_once_an_adapter_is_in_use() -> None:
    found = said(["coder:3b", "coder:3b+scope-1", "coder:3b+scope-1"], parallel=2)
    assert [cached for _, _, cached in found] == [None, False, False]


def test_a_server_that_routes_is_asked_for_the_adapters_own_model() -> None:
    found = said(["coder:3b+scope-1"], models=("coder:3b", "coder:3b+scope-1"))
    assert found == [("coder:3b+scope-1", FIRST, None)]


def test_a_model_of_its_own_for_each_adapter_shares_no_cache() -> None:
    base, adapter = "coder:3b", "coder:3b+scope-1"
    found = said([base, adapter, base, adapter], parallel=2, models=(base, adapter), routes=True)
    assert [(model, cached) for model, _, cached in found] == [
        (base, None),
        (adapter, None),
        (base, None),
        (adapter, None),
    ]


def test_an_adapter_that_is_not_loaded_is_an_error_with_what_is() -> None:
    with OpenAiServer(["hi"], adapters=FILES) as server:
        answer = connected(server).send(chat_request(model=_model("coder:3b+other-3")))
        assert isinstance(answer.error, ModelNotFound)
        assert "it has scope-1, task-2" in answer.error.message
        assert server.requests == []
        with pytest.raises(ModelNotFound):
            connected(server).show("coder:3b+other-3")
