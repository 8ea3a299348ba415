"""What `cra init` finds at a model server."""

import socket

import pytest
from testing.servers.ollama_server import OllamaServer
from testing.servers.openai_server import Kind, OpenAiServer

from clean_room_agent.app import discovery
from clean_room_agent.app.discovery import (
    Wanted,
    find_server,
    find_window,
    ollama_url,
    suggest_models,
    with_scheme,
)
from clean_room_agent.errors import ModelError, ServerBusy
from clean_room_agent.llm.transport import ServedModel
from clean_room_agent.llm.transports import http

MODELS = {
    ("coder:3b", "thinker:4b"): ("coder:3b", "thinker:4b"),
    ("thinker:4b", "coder:3b"): ("coder:3b", "thinker:4b"),
    ("embed-text:1b", "general:7b"): ("general:7b", "general:7b"),
    ("coder:3b", "coder:7b"): ("coder:3b", "coder:3b"),
    ("embed-text:1b",): None,
    (): None,
}


@pytest.mark.parametrize("tags", MODELS)
def test_a_coder_is_suggested_for_code_and_another_for_the_rest(tags: tuple[str, ...]) -> None:
    models = tuple(ServedModel(tag=tag, digest="0", size_bytes=1) for tag in tags)
    assert suggest_models(models) == MODELS[tags]


def test_a_server_is_found_with_its_models() -> None:
    with OllamaServer([]) as server:
        found = find_server(Wanted(base_url=server.base_url))
        assert [model.tag for model in found.models] == ["coder:3b", "thinker:4b"]
        assert found.version == f"version {server.version}"
        assert found.models_table == {"provider": "ollama", "base_url": server.base_url}


def test_where_nobody_answers_it_is_a_model_error() -> None:
    with OllamaServer([]) as server:
        url = server.base_url
    with pytest.raises(ModelError):
        find_server(Wanted(base_url=url))


def test_the_window_is_no_larger_than_a_usual_one() -> None:
    with OllamaServer([]) as server:
        assert (
            find_window(find_server(Wanted(base_url=server.base_url)), ("coder:3b", "thinker:4b")) == 32_768
        )


def test_a_model_that_the_server_does_not_describe_does_not_count() -> None:
    with OllamaServer([]) as server:
        assert find_window(find_server(Wanted(base_url=server.base_url)), ("nobody:1b",)) == 32_768


SERVED: dict[Kind, tuple[dict[str, object], int | None]] = {
    "vllm": ({}, 4096),
    "llama-server": ({"grammar": True}, 4096),
    "lm-studio": ({}, 4096),
    "llama-cpp-python": ({"schema_dialect": "json_object", "streaming": False}, None),
}


@pytest.mark.parametrize("kind", SERVED)
def test_a_server_of_openais_api_is_found_with_what_it_needs_and_the_window_that_it_gives(kind: Kind) -> None:
    needs, window = SERVED[kind]
    with OpenAiServer([], kind=kind) as server:
        found = find_server(Wanted(base_url=server.base_url))
        assert found.models_table == {"provider": "openai", "base_url": server.base_url} | needs
        assert find_window(found, ("coder:3b", "thinker:4b")) == window


def test_of_two_failures_the_one_of_the_named_protocol_is_told() -> None:
    with OllamaServer([]) as server, pytest.raises(ModelError, match="does not speak OpenAI's protocol"):
        find_server(Wanted(base_url=server.base_url, provider="openai"))


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        (":8123", "http://127.0.0.1:8123"),
        ("0.0.0.0:8123", "http://127.0.0.1:8123"),
        (" 'http://localhost' ", "http://localhost:80"),
        ("https://box.lan/ollama", "https://box.lan:443"),
        ("[::]:11435", "http://[::1]:11435"),
        ("box:none", "http://box:none"),
    ],
)
def test_a_host_is_read_as_ollama_reads_it(host: str, url: str) -> None:
    assert ollama_url(host) == url


def test_an_address_without_a_scheme_is_of_http() -> None:
    assert with_scheme("127.0.0.1:8080") == "http://127.0.0.1:8080"
    assert with_scheme("https://127.0.0.1") == "https://127.0.0.1"


def test_the_server_that_the_variable_names_comes_first() -> None:
    with OllamaServer([]) as server:
        host = server.base_url.removeprefix("http://")
        assert find_server(Wanted(ollama_host=host)).base_url == server.base_url


def test_a_variable_that_names_another_machine_is_said_where_nobody_else_answers() -> None:
    with pytest.raises(ModelError, match=r"OLLAMA_HOST: .* is not this machine"):
        find_server(Wanted(ollama_host="192.0.2.1", provider="ollama"))


def test_of_servers_that_fail_the_busy_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "INFO_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        places = (("ollama", "http://127.0.0.1:1"), ("openai", url))
        monkeypatch.setattr(discovery, "USUAL_PLACES", places)
        with pytest.raises(ServerBusy, match=f"{url} is busy: /v1/models was not answered within 0.2 s"):
            find_server(Wanted())
