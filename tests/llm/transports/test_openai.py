import json
from collections.abc import Callable
from typing import Any, Literal

import httpx
import pytest
from testing.client.chat_request import chat_request
from testing.client.model_client import COLOUR, models_config
from testing.servers.ollama_script import Answer
from testing.servers.openai_server import Kind, OpenAiServer

from clean_room_agent.errors import ConfigError, ModelNotFound, ServerFailed, ServerUnreachable
from clean_room_agent.llm.transport import Gap
from clean_room_agent.llm.transports.openai import OpenAiTransport, connect, encode


def mocked(handler: Callable[[httpx.Request], httpx.Response], **fields: Any) -> OpenAiTransport:
    config = models_config(provider="openai", **fields)
    return OpenAiTransport(
        config, httpx.Client(base_url=config.base_url, transport=httpx.MockTransport(handler))
    )


KINDS: dict[Kind, tuple[str, int | None, int | None]] = {
    "vllm": ("vLLM 0.11.0", 4096, None),
    "llama-server": ("llama-server b1-0", 4096, 32_768),
    "lm-studio": ("LM Studio", 4096, 32_768),
    "llama-cpp-python": ("llama-cpp-python", None, None),
    "silent": ("an OpenAI-compatible server", None, None),
}


def test_each_piece_of_an_answer_is_heard_as_it_comes() -> None:
    heard: list[str] = []
    with OpenAiServer([Answer(text="one two three", piece_chars=2)]) as server:
        answer = connect(models_config(server.base_url, provider="openai")).send(
            chat_request(heard=lambda: heard.append(""))
        )
    assert answer.text == "one two three"
    assert len(heard) == 7


def test_a_request_says_everything_that_the_server_would_guess_wrong() -> None:
    with OpenAiServer(["hi"]) as server:
        answer = connect(models_config(server.base_url, provider="openai")).send(chat_request())
    assert json.loads(answer.request_body) == server.requests[0]
    assert server.requests[0] == {
        "model": "coder:3b",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "# Say it\n\nNow."},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 50,
        "temperature": 0.0,
        "seed": 1,
        "top_p": 1.0,
        "top_k": 1,
        "repeat_penalty": 1.0,
        "repetition_penalty": 1.0,
        "chat_template_kwargs": {"enable_thinking": False},
        "thinking_budget_tokens": 0,
    }


@pytest.mark.parametrize(
    ("kind", "extra"), [("vllm", {}), ("llama-server", {"chat_template_kwargs": {"enable_thinking": True}})]
)
def test_thoughts_have_a_budget_where_they_are_not_wanted_and_the_server_knows_one(
    kind: Kind, extra: dict[str, object]
) -> None:
    with OpenAiServer(["hi"], kind=kind) as server:
        connect(models_config(server.base_url, provider="openai", extra_body=extra)).send(chat_request())
    assert "thinking_budget_tokens" not in server.requests[0]


@pytest.mark.parametrize(
    ("dialect", "field", "value"),
    [
        (
            "json_schema",
            "response_format",
            {
                "type": "json_schema",
                "json_schema": {"name": "colour", "strict": True, "schema": COLOUR.schema},
            },
        ),
        ("json_object", "response_format", {"type": "json_object", "schema": COLOUR.schema}),
        ("structured_outputs", "structured_outputs", {"json": COLOUR.schema}),
    ],
)
def test_each_dialect_writes_the_schema_its_own_way(dialect: str, field: str, value: object) -> None:
    config = models_config(provider="openai", schema_dialect=dialect)
    body = encode(chat_request(schema=COLOUR.schema), config)
    assert body[field] == value
    assert len({"response_format", "structured_outputs"} & body.keys()) == 1


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("spared", ["usage", "timings", ""])
def test_what_a_server_had_of_the_prompt_is_kept(
    spared: Literal["", "usage", "timings"], streaming: bool
) -> None:
    with OpenAiServer(["hi"] * 2, spared=spared) as server:
        transport = connect(models_config(server.base_url, provider="openai", streaming=streaming))
        first, second = (
            transport.send(chat_request()),
            transport.send(chat_request(prompt="# Say it\n\nLater.")),
        )
    told = [answer.cached_tokens for answer in (first, second)]
    if not spared:
        assert told == [None, None]
    else:
        assert told[0] == 0
        assert 0 < (told[1] or 0) <= (second.prompt_tokens or 0)


def test_a_server_tells_how_many_requests_it_answers_at_a_time() -> None:
    for kind, slots, told in (("llama-server", 4, 4), ("llama-server", None, None), ("vllm", 4, None)):
        with OpenAiServer([], kind=kind, slots=slots) as server:  # type: ignore[arg-type]
            assert connect(models_config(server.base_url, provider="openai")).slots("coder:3b") == told


def test_a_server_that_routes_is_asked_for_a_model_that_it_has_not_loaded_yet() -> None:
    with OpenAiServer([], routes=True, slots=2) as server:
        transport = connect(models_config(server.base_url, provider="openai"))
        assert transport.version() == "llama-server b1-0"
        assert (transport.window("coder:3b"), transport.slots("coder:3b")) == (4096, 2)
        assert (transport.count("coder:3b", "be brief", "hello there") or 0) > 0


def test_a_long_gap_is_filled_by_a_server_that_routes() -> None:
    with OpenAiServer(["x"], routes=True, fills="rightly", batch=4096) as server:
        gap = Gap(before="word " * 900, after="", stop=("\n",))
        sent = connect(models_config(server.base_url, provider="openai")).send(
            chat_request(gap=gap, max_tokens=20)
        )
        assert sent.error is None


@pytest.mark.parametrize("name", ["sk-abc", "a b", "", "$KEY"])
def test_what_is_no_variables_name_is_refused_and_not_repeated(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        models_config(api_key_env=name)
    assert not name or name not in caught.value.message + caught.value.hint


def test_the_address_may_have_its_path_or_not() -> None:
    with OpenAiServer(["one", "two"]) as server:
        for url in (server.base_url, f"{server.base_url}/v1"):
            assert connect(models_config(url, provider="openai")).send(chat_request()).text in {"one", "two"}
    assert set(server.state.paths) == {
        "/v1/models",
        "/lora-adapters?model=coder%3A3b",
        "/api/show",
        "/v1/chat/completions",
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_tells_what_it_is_and_the_window_that_it_gives(kind: Kind) -> None:
    version, served, trained = KINDS[kind]
    with OpenAiServer([], kind=kind) as server:
        transport = connect(models_config(server.base_url, provider="openai"))
        assert transport.version() == version
        assert [model.tag for model in transport.list_models()] == ["coder:3b", "thinker:4b"]
        details = transport.show("coder:3b")
        assert (details.served, details.context_length) == (served, trained)
        assert transport.window("coder:3b") == served
        with pytest.raises(ModelNotFound, match="'other:1b'"):
            transport.show("other:1b")


def test_questions_to_a_server_that_is_not_there_or_another_fail_clearly() -> None:
    with pytest.raises(ServerUnreachable, match="no model server answers") as caught:
        connect(models_config("http://127.0.0.1:9", provider="openai")).list_models()
    assert "LM Studio 1234" in caught.value.hint
    with pytest.raises(ServerFailed, match="does not speak OpenAI's protocol"):
        mocked(lambda _: httpx.Response(200, content=b"<html>")).version()


def test_a_proxy_of_the_environment_never_sees_a_local_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with OpenAiServer(["hi"]) as server:
        assert connect(models_config(server.base_url, provider="openai")).send(chat_request()).text == "hi"
