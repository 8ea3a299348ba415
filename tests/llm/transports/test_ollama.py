import contextlib
import json
import threading
from collections.abc import Callable

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testing.client.chat_request import MODEL, chat_request
from testing.client.model_client import models_config
from testing.patience import PATIENCE, wait_until
from testing.servers.ollama_script import Answer
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.errors import ModelError, ModelNotFound, ServerFailed, ServerTimeout, ServerUnreachable
from clean_room_agent.llm.transports.ollama import OllamaTransport, connect


def mocked(handler: Callable[[httpx.Request], httpx.Response]) -> OllamaTransport:
    """A server that runs its models itself, and answers prompts as `handler` does."""

    def handle(sent: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={}) if sent.url.path == "/api/show" else handler(sent)

    config = models_config()
    return OllamaTransport(
        config, httpx.Client(base_url=config.base_url, transport=httpx.MockTransport(handle))
    )


def test_each_piece_of_an_answer_is_heard_as_it_comes() -> None:
    heard: list[str] = []
    with OllamaServer([Answer(text="one two three", piece_chars=2)]) as server:
        answer = connect(models_config(server.base_url)).send(chat_request(heard=lambda: heard.append("")))
    assert answer.text == "one two three"
    assert len(heard) == 7


def test_a_request_says_everything_that_the_server_would_guess_wrong() -> None:
    with OllamaServer(["hi"]) as server:
        answer = connect(models_config(server.base_url)).send(chat_request())
    assert json.loads(answer.request_body) == server.requests[0]
    assert server.requests[0] == {
        "model": "coder:3b",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "# Say it\n\nNow."},
        ],
        "stream": True,
        "keep_alive": "30m",
        "think": False,
        "truncate": False,
        "shift": False,
        "options": {
            "num_ctx": 4096,
            "num_predict": 50,
            "temperature": 0.0,
            "seed": 1,
            "top_k": 1,
            "top_p": 1.0,
            "repeat_penalty": 1.0,
            "stop": [],
        },
    }


def test_an_answer_has_text_thinking_counts_and_probabilities() -> None:
    said = Answer(text="Yes \u00e9\U0001f600", thinking="Hm, yes.", likely=(("Yes", 0.75), ("No", 0.25)))
    with OllamaServer([said]) as server:
        answer = connect(models_config(server.base_url)).send(chat_request(wants_logprobs=True))
    assert answer.error is None
    assert (answer.text, answer.thinking, answer.finish) == ("Yes \u00e9\U0001f600", "Hm, yes.", "stop")
    assert answer.prompt_tokens == 21
    assert answer.completion_tokens == 3
    assert [choice.token for choice in answer.tokens] == ["Yes"]
    assert [token for token, _ in answer.tokens[0].top] == ["Yes", "No"]


@settings(max_examples=25)
@given(st.text(min_size=1, max_size=60), st.integers(min_value=1, max_value=40))
def test_an_answer_survives_any_division_of_its_stream(text: str, size: int) -> None:
    lines = [{"message": {"content": character}, "done": False} for character in text]
    stream = b"\n".join(json.dumps(line, ensure_ascii=False).encode() for line in [*lines, {"done": True}])

    def handler(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=(stream[at : at + size] for at in range(0, len(stream), size)))

    answer = mocked(handler).send(chat_request())
    assert (answer.text, answer.error) == (text, None)


@pytest.mark.parametrize(
    "line",
    [
        b"<html>hello</html>",
        b"[]",
        b'{"message": "text"}',
        b'{"message": {"content": 5}}',
        b"\xff\xfe",
        b'{"done": "perhaps"}',
    ],
)
def test_what_is_not_the_protocol_is_said_to_be_so(line: bytes) -> None:
    answer = mocked(lambda _: httpx.Response(200, content=line)).send(chat_request())
    assert isinstance(answer.error, ServerFailed)
    assert "does not speak Ollama's protocol" in answer.error.message
    assert "base_url" in answer.error.hint


@given(st.binary())
@settings(deadline=None)
def test_any_bytes_are_an_answer_with_or_without_an_error(content: bytes) -> None:
    assert mocked(lambda _: httpx.Response(200, content=content)).send(chat_request()).error is not None
    assert mocked(lambda _: httpx.Response(500, content=content)).send(chat_request()).error is not None


@pytest.mark.parametrize("reason", ["load", "unload"])
def test_an_answer_ended_by_the_server_for_its_own_reasons_is_a_failure(reason: str) -> None:
    stream = json.dumps({"done": True, "done_reason": reason}).encode()
    answer = mocked(lambda _: httpx.Response(200, content=stream)).send(chat_request())
    assert isinstance(answer.error, ServerFailed)
    assert repr(reason) in answer.error.message


@pytest.mark.parametrize(
    ("answer", "timeouts", "key", "begun"),
    [
        (Answer(text="x", load_seconds=60), {"first_byte": 0.15}, "first_byte", False),
        (Answer(text="x", load_seconds=60), {"total": 0.15}, "total", False),
        (Answer(text="x" * 90, pause_seconds=60), {"idle": 0.15}, "idle", True),
        (Answer(text="x" * 900, pause_seconds=0.06), {"total": 0.2}, "total", True),
    ],
)
def test_each_deadline_is_kept_and_named(
    answer: Answer, timeouts: dict[str, float], key: str, begun: bool
) -> None:
    with OllamaServer([answer]) as server:
        raw = connect(models_config(server.base_url, timeouts=timeouts)).send(chat_request(max_tokens=999))
    assert isinstance(raw.error, ServerTimeout)
    assert f"raise {key} in [models.timeouts]" in raw.error.hint
    assert bool(raw.text) == begun


def test_a_server_tells_its_version_its_models_and_what_it_holds() -> None:
    with OllamaServer(["hi"], version="0.15.1") as server:
        transport = connect(models_config(server.base_url))
        transport.send(chat_request())
        assert transport.version() == "version 0.15.1"
        assert [model.tag for model in transport.list_models()] == ["coder:3b", "thinker:4b"]
        assert all(len(model.digest) == 64 for model in transport.list_models())
        assert transport.show("coder:3b").context_length == 262_144
        assert transport.show("coder:3b").capabilities == ("completion", "tools")
        with pytest.raises(ModelNotFound) as caught:
            transport.show("other:1b")
    assert "it has: coder:3b, thinker:4b" in caught.value.hint


def test_questions_to_a_server_that_is_not_there_or_not_ollama_fail_clearly() -> None:
    with pytest.raises(ServerUnreachable, match="no model server answers"):
        connect(models_config("http://127.0.0.1:9")).list_models()
    with pytest.raises(ServerFailed, match="does not speak Ollama's protocol"):
        mocked(lambda _: httpx.Response(200, content=b"<html>")).version()
    with pytest.raises(ServerFailed, match="status 404"):
        mocked(lambda _: httpx.Response(404, content=b"no")).list_models()


def test_a_model_is_loaded_once_as_its_questions_want_it() -> None:
    with OllamaServer(["hi"]) as server:
        transport = connect(models_config(server.base_url))
        load = transport.loading(MODEL)
        assert load is not None
        load.run()
        transport.send(chat_request())
        assert (server.reloads, len(server.loads), len(server.requests)) == (0, 1, 1)
    (sent,) = server.loads
    assert "prompt" not in sent
    assert (sent["keep_alive"], sent["options"]) == ("30m", {"num_ctx": 4096})


def test_a_load_that_nobody_waits_for_any_more_ends() -> None:
    with OllamaServer([], load_seconds=PATIENCE) as server:
        load = connect(models_config(server.base_url)).loading(MODEL)
        assert load is not None
        ended: list[ModelError] = []

        def run() -> None:
            with contextlib.suppress(ModelError):
                load.run()
                return
            ended.append(ModelError("cancelled"))

        thread = threading.Thread(target=run)
        thread.start()
        wait_until(lambda: bool(server.loads), "the request")
        load.cancel()
        thread.join(PATIENCE / 2)
        assert ended
        with pytest.raises(ModelError):
            load.run()


def test_a_proxy_of_the_environment_never_sees_a_local_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with OllamaServer(["hi"]) as server:
        assert connect(models_config(server.base_url)).send(chat_request()).text == "hi"
