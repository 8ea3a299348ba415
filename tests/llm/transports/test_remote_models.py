"""Models that a local server sends to another machine get no prompt, unless that is allowed."""

import httpx
import pytest
from testing.client.chat_request import chat_request
from testing.client.model_client import models_config
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.errors import ForwardingServer, ModelError
from clean_room_agent.llm.transports import ollama
from clean_room_agent.llm.transports.openai import OpenAiTransport

HOST = "https://cloud.example:443"


def test_a_forwarded_model_gets_no_prompt() -> None:
    with OllamaServer(["hi"], forwards={"coder:3b": HOST}) as server:
        answer = ollama.connect(models_config(server.base_url)).send(chat_request())
        assert server.requests == []
    assert isinstance(answer.error, ForwardingServer)
    assert HOST in answer.error.message
    assert "allow_remote = true" in answer.error.hint


def test_an_answer_that_came_from_elsewhere_ends_there() -> None:
    with OllamaServer(["a", "long answer"]) as server:
        transport = ollama.connect(models_config(server.base_url))
        assert transport.send(chat_request()).error is None
        server.forwards["coder:3b"] = HOST
        answer = transport.send(chat_request())
    assert isinstance(answer.error, ForwardingServer)
    assert answer.text == ""


def test_a_server_that_cannot_be_asked_gets_no_prompt() -> None:
    asked: list[str] = []

    def handler(sent: httpx.Request) -> httpx.Response:
        asked.append(sent.url.path)
        return httpx.Response(500, json={"error": "no"})

    config = models_config()
    client = httpx.Client(base_url=config.base_url, transport=httpx.MockTransport(handler))
    answer = ollama.OllamaTransport(config, client).send(chat_request())
    assert isinstance(answer.error, ModelError)
    assert asked == ["/api/show"]


@pytest.mark.parametrize("allowed", [False, True])
def test_ollama_is_asked_behind_openais_api_too(*, allowed: bool) -> None:
    asked: list[str] = []

    def handler(sent: httpx.Request) -> httpx.Response:
        asked.append(sent.url.path)
        if sent.url.path == "/api/show":
            return httpx.Response(200, json={"remote_host": HOST, "remote_model": "coder"})
        return httpx.Response(404 if sent.url.path == "/v1/models" else 500, json={"error": "stop"})

    config = models_config(provider="openai", allow_remote=allowed)
    client = httpx.Client(base_url=config.base_url, transport=httpx.MockTransport(handler))
    answer = OpenAiTransport(config, client).send(chat_request())
    assert isinstance(answer.error, ForwardingServer) is not allowed
    assert asked[-1] == ("/v1/chat/completions" if allowed else "/api/show")


def test_lists_and_details_tell_where_a_model_is_sent_on_to() -> None:
    with OllamaServer([], forwards={"coder:3b": HOST}) as server:
        transport = ollama.connect(models_config(server.base_url))
        assert {model.tag: model.forwards_to for model in transport.list_models()} == {
            "coder:3b": HOST,
            "thinker:4b": "",
        }
        assert transport.show("coder:3b").forwards_to == HOST
