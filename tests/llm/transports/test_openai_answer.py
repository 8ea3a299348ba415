import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testing.client.chat_request import chat_request
from testing.client.model_client import models_config

from clean_room_agent.llm.transports.openai import OpenAiTransport


def mocked(handler: Callable[[httpx.Request], httpx.Response], **fields: Any) -> OpenAiTransport:
    config = models_config(provider="openai", **fields)
    return OpenAiTransport(
        config, httpx.Client(base_url=config.base_url, transport=httpx.MockTransport(handler))
    )


@settings(max_examples=25)
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

    answer = mocked(handler).send(chat_request())
    assert (answer.text, answer.error) == (text, None)


@given(st.binary(), st.booleans())
@settings(deadline=None)
def test_any_bytes_are_an_answer_with_or_without_an_error(content: bytes, streaming: bool) -> None:
    for status in (200, 400, 500):
        answer = mocked(lambda _, status=status: httpx.Response(status, content=content), streaming=streaming)  # type: ignore[misc]
        assert answer.send(chat_request()).error is not None


def test_an_event_of_its_own_for_an_error_is_understood() -> None:
    error = {
        "code": 400,
        "message": "too long",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 9,
        "n_ctx": 4,
    }
    stream = f"error: {json.dumps(error)}\n\n".encode()
    answer = mocked(lambda _: httpx.Response(200, content=stream)).send(chat_request())
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
    answer = mocked(lambda _: httpx.Response(200, content=stream)).send(chat_request())
    assert answer.tokens[0].top == (("Yes", -0.1),)


def _piece(content: str, finish: str | None = None) -> str:
    return json.dumps({"choices": [{"delta": {"content": content}, "finish_reason": finish}]})


END = f"data: {_piece('', 'stop')}\n\ndata: [DONE]\n\n"
PARTS = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "hi"}]
HALVES = [_piece("\ud83d"), _piece("\ude00")]


@pytest.mark.parametrize(
    ("stream", "text"),
    [
        (f"data:\n\ndata\n\ndata: {_piece('hi')}\n\n", "hi"),
        (f"\ufeffdata: {_piece('hi')}\n\n", "hi"),
        (f": ping\nevent: message\nid: 1\nretry: 5\ndata: {_piece('hi')}\n\n", "hi"),
        (f"data: {_piece('h')}\n\nextra: x\nextra\ndata: {_piece('i')}\n\n", "hi"),
        ("data: " + _piece("hi").replace(",", ",\ndata: ") + "\n\n", "hi"),
        (f"data: {HALVES[0]}\n\ndata: {HALVES[1]}\n\n", "\U0001f600"),
        (f"data: {HALVES[0]}\n\ndata: {_piece('b')}\n\n", "\ufffdb"),
        (f"data: {_piece('b')}\n\ndata: {HALVES[1]}\n\n", "b\ufffd"),
        (f"data: {json.dumps({'choices': [{'delta': {'content': PARTS}}]})}\n\n", "hi"),
        (f"data: {_piece('hi', 'stop')}\n\ndata: [done]\n\n", "hi"),
        (f"data: {json.dumps({'choices': [{'index': 1, 'delta': {'content': 'no'}}]})}\n\n", ""),
    ],
)
def test_lawful_frames_are_read(stream: str, text: str) -> None:
    for whole in (stream + END, (stream + END).replace("\n", "\r\n"), (stream + END).replace("\n", "\r")):
        content = whole.encode()
        answer = mocked(lambda _, content=content: httpx.Response(200, content=content)).send(chat_request())  # type: ignore[misc]
        assert (answer.text, answer.error) == (text, None)


@pytest.mark.parametrize("reason", ["content_filter", "SAFETY", "recitation", "guardrail_intervened"])
def test_a_filter_is_told_as_one(reason: str) -> None:
    stream = f"data: {_piece('hi', reason)}\n\ndata: [DONE]\n\n".encode()
    answer = mocked(lambda _: httpx.Response(200, content=stream)).send(chat_request())
    assert answer.error is not None
    assert "filters what its models say" in (answer.error.hint or "")


def test_bytes_of_a_character_in_two_pieces_are_put_together() -> None:
    pieces = [
        b'data: {"choices":[{"delta":{"content":"' + half + b'"}}]}\n\n'
        for half in (b"\xf0\x9f", b"\x98\x80")
    ]
    answer = mocked(lambda _: httpx.Response(200, content=b"".join(pieces) + END.encode())).send(
        chat_request()
    )
    assert (answer.text, answer.error) == ("\U0001f600", None)


def test_one_object_in_place_of_a_stream_is_read() -> None:
    whole = {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}
    for error, text in ((None, "hi"), ({"message": "boom"}, "")):
        content = json.dumps({"error": error} if error else whole, indent=1).encode()
        answer = mocked(lambda _, content=content: httpx.Response(200, content=content)).send(chat_request())  # type: ignore[misc]
        assert answer.text == text
        assert (answer.error is None) == (error is None)
        assert answer.error is None or "boom" in answer.error.message


@pytest.mark.parametrize(
    ("stream", "said", "kept"),
    [
        (
            f'data: {_piece("hi")}\n\nevent: error\ndata: {{"message": "boom"}}\n\ndata: [DONE]\n\n',
            "boom",
            "hi",
        ),
        ("event: error\ndata: out of memory\n\n", "out of memory", ""),
        ('data: {"message": "boom", "code": 500}\n\ndata: [DONE]\n\n', "boom", ""),
        ("data: [DONE]\n\n", "its end marker came alone", ""),
        (f'data: {_piece("hi")}\n\ndata: {{"choices": [\n\ndata: [DONE]\n\n', "does not speak", "hi"),
        ("data: tick\n\n" + END, "does not speak", ""),
    ],
)
def test_a_stream_that_fails_says_why(stream: str, said: str, kept: str) -> None:
    answer = mocked(lambda _: httpx.Response(200, content=stream.encode())).send(chat_request())
    assert answer.error is not None
    assert said in answer.error.message
    assert answer.text == kept


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        *[(reason, "stop") for reason in ("eos", "eos_token", "end_turn", "STOP", "a new one")],
        *[(reason, "length") for reason in ("max_tokens", "length", "MAX_TOKENS")],
        *[(reason, "length") for reason in ("token_limit", "max_output_tokens", "context_length_exceeded")],
        *[(reason, "tool_call") for reason in ("tool_calls", "function_call")],
    ],
)
def test_reasons_of_any_server_are_understood(reason: str, finish: str) -> None:
    stream = f"data: {_piece('hi', reason)}\n\ndata: [DONE]\n\n".encode()
    answer = mocked(lambda _: httpx.Response(200, content=stream)).send(chat_request())
    assert (answer.text, answer.finish, answer.error) == ("hi", finish, None)
