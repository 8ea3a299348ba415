"""What a server sends is bounded in size and time, and taken as it is."""

import gzip
import json
from collections.abc import Iterator

import httpx
import pytest
from testing.client.model_client import models_config
from tests.llm.transports.test_ollama import mocked, request

from clean_room_agent.errors import ServerFailed, ServerUnreachable
from clean_room_agent.llm.transports import http as door
from clean_room_agent.llm.transports.ollama import OllamaTransport


@pytest.mark.parametrize("count", [2**63, 2**64, 10**400, -1])
def test_a_count_that_no_database_holds_is_an_error_of_the_server(count: int) -> None:
    line = json.dumps({"message": {"content": "hi"}, "done": True, "prompt_eval_count": count})
    answer = mocked(lambda _: httpx.Response(200, content=line)).send(request())
    assert isinstance(answer.error, ServerFailed)


def test_compressed_answers_are_not_unpacked() -> None:
    packed = gzip.compress(b" " * 10_000_000)
    headers = {"content-encoding": "gzip"}
    transport = mocked(lambda _: httpx.Response(200, headers=headers, stream=httpx.ByteStream(packed)))
    with pytest.raises(ServerFailed, match="compressed"):
        transport.version()
    answer = transport.send(request())
    assert isinstance(answer.error, ServerFailed)
    assert "compressed" in answer.error.message


def _endless() -> Iterator[bytes]:
    while True:
        yield b" " * 100_000


def test_an_answer_without_an_end_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "MAX_SMALL_BYTES", 1_000_000)
    monkeypatch.setattr(door, "MAX_ANSWER_BYTES", 1_000_000)

    def lines() -> Iterator[bytes]:
        while True:
            yield b'{"message":{"content":""}}\n' * 1000

    with pytest.raises(ServerFailed, match="without an end"):
        mocked(lambda _: httpx.Response(200, content=_endless())).version()
    answer = mocked(lambda _: httpx.Response(200, content=lines())).send(request())
    assert answer.error is not None
    assert "without an end" in answer.error.message


def test_a_small_question_has_a_deadline_however_slowly_the_answer_drips() -> None:
    now = [0.0]

    def drip() -> Iterator[bytes]:
        while True:
            now[0] += 1.0
            yield b" "

    config = models_config()
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=drip()))
    client = httpx.Client(base_url=config.base_url, transport=transport)
    with pytest.raises(ServerUnreachable, match="within 15 s"):
        OllamaTransport(config, client, timer=lambda: now[0]).version()
    assert now[0] < door.INFO_SECONDS + 2
