import json
from collections.abc import Callable
from typing import Any

import httpx
from hypothesis import given, settings
from hypothesis import strategies as st
from testing.client.model_client import models_config

from clean_room_agent.artifacts.model_calls import CallIdentity
from clean_room_agent.llm.router import ModelConfig
from clean_room_agent.llm.transport import ChatRequest, Sampling
from clean_room_agent.llm.transports.openai import OpenAiTransport

MODEL = ModelConfig(
    tag="coder:3b",
    role="coding",
    provider="openai",
    window=4096,
    reserved=1024,
    temperature=0.0,
    max_tokens=None,
)


def request(**fields: Any) -> ChatRequest:
    given: dict[str, Any] = {
        "identity": CallIdentity(pass_id="p", prompt="colour", item="", attempt=0),
        "model": MODEL,
        "system": "Be brief.",
        "prompt": "# Say it\n\nNow.",
        "schema": None,
        "wants_logprobs": False,
        "max_tokens": 50,
        "sampling": Sampling(),
    }
    return ChatRequest(**(given | fields))


def mocked(handler: Callable[[httpx.Request], httpx.Response], **fields: Any) -> OpenAiTransport:
    config = models_config(provider="openai", **fields)
    return OpenAiTransport(
        config, httpx.Client(base_url=config.base_url, transport=httpx.MockTransport(handler))
    )


@settings(max_examples=25, deadline=None)
@given(
    st.text(min_size=1, max_size=60), st.integers(min_value=1, max_value=40), st.sampled_from(["\n", "\r\n"])
)
def test_an_answer_survives_any_division_of_its_stream(text: str, size: int, end: str) -> None:
    events: list[dict[str, Any]] = [{"choices": [{"delta": {"content": character}}]} for character in text]
    events.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    lines = [
        ": ping",
        *(f"data: {json.dumps(event, ensure_ascii=False)}" for event in events),
        "data: [DONE]",
    ]
    stream = "".join(line + end * 2 for line in lines).encode()

    def handler(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=(stream[at : at + size] for at in range(0, len(stream), size)))

    answer = mocked(handler).send(request())
    assert (answer.text, answer.error) == (text, None)


@given(st.binary(), st.booleans())
@settings(deadline=None)
def test_any_bytes_are_an_answer_with_or_without_an_error(content: bytes, streaming: bool) -> None:
    for status in (200, 400, 500):
        answer = mocked(lambda _, status=status: httpx.Response(status, content=content), streaming=streaming)  # type: ignore[misc]
        assert answer.send(request()).error is not None


def test_nothing_after_the_end_is_read() -> None:
    stream = b'data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\ndata: {"error":"x"}\n'
    answer = mocked(lambda _: httpx.Response(200, content=stream)).send(request())
    assert (answer.text, answer.error) == ("a", None)


def test_an_event_of_its_own_for_an_error_is_understood() -> None:
    error = {
        "code": 400,
        "message": "too long",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 9,
        "n_ctx": 4,
    }
    stream = f"error: {json.dumps(error)}\n\n".encode()
    answer = mocked(lambda _: httpx.Response(200, content=stream)).send(request())
    assert answer.refusal is not None
    assert (answer.refusal.prompt_tokens, answer.refusal.window) == (9, 4)


def test_a_probability_that_is_not_given_is_left_out() -> None:
    token = {
        "token": "Yes",
        "logprob": None,
        "top_logprobs": [{"token": "Yes", "logprob": -0.1}, {"token": "No", "logprob": None}],
    }
    choice = {"delta": {"content": "Yes"}, "logprobs": {"content": [token]}, "finish_reason": "stop"}
    stream = f"data: {json.dumps({'choices': [choice]})}\n\n".encode()
    answer = mocked(lambda _: httpx.Response(200, content=stream)).send(request())
    assert answer.tokens[0].top == (("Yes", -0.1),)
