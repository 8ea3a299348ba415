"""Adapters on llama-server: which requests name them, and when what was read before may be taken up again."""

from typing import Any

import pytest
from msgspec.structs import replace
from testing.client.chat_request import MODEL, chat_request
from testing.client.model_client import models_config
from testing.servers.openai_server import OpenAiServer

from clean_room_agent.errors import ModelNotFound
from clean_room_agent.llm.transports.openai import OpenAiTransport, connect

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


def test_an_adapter_that_is_not_loaded_is_an_error_with_what_is() -> None:
    with OpenAiServer(["hi"], adapters=FILES) as server:
        answer = connected(server).send(chat_request(model=_model("coder:3b+other-3")))
        assert isinstance(answer.error, ModelNotFound)
        assert "it has scope-1, task-2" in answer.error.message
        assert server.requests == []
        with pytest.raises(ModelNotFound):
            connected(server).show("coder:3b+other-3")
