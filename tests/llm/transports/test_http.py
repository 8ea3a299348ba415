"""What a server sends is bounded in size and time, and taken as it is."""

import gzip
import itertools
import json
from collections.abc import Iterator

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from testing.client.chat_request import chat_request
from testing.client.model_client import models_config
from tests.llm.transports.test_ollama import mocked

from clean_room_agent.errors import ServerBusy, ServerFailed
from clean_room_agent.llm.transports import http
from clean_room_agent.llm.transports.http import LineSplitter
from clean_room_agent.llm.transports.ollama import OllamaTransport


def split(chunks: list[bytes]) -> list[bytes]:
    splitter = LineSplitter()
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    return lines + splitter.end()


@given(st.lists(st.text()), st.lists(st.integers(min_value=0)), st.booleans())
def test_lines_survive_any_division_into_chunks(texts: list[str], cuts: list[int], ended: bool) -> None:
    lines = [json.dumps({"t": text}, ensure_ascii=False).encode() for text in texts]
    whole = b"\n".join(lines) + (b"\n" if ended else b"")
    places = sorted({cut % (len(whole) + 1) for cut in cuts} | {0, len(whole)})
    chunks = [whole[start:end] for start, end in itertools.pairwise(places)]
    assert split(chunks) == lines


@pytest.mark.parametrize("count", [2**63, 2**64, 10**400, -1])
def test_a_count_that_no_database_holds_is_an_error_of_the_server(count: int) -> None:
    line = json.dumps({"message": {"content": "hi"}, "done": True, "prompt_eval_count": count})
    answer = mocked(lambda _: httpx.Response(200, content=line)).send(chat_request())
    assert isinstance(answer.error, ServerFailed)


def test_compressed_answers_are_not_unpacked() -> None:
    packed = gzip.compress(b" " * 10_000_000)
    headers = {"content-encoding": "gzip"}
    transport = mocked(lambda _: httpx.Response(200, headers=headers, stream=httpx.ByteStream(packed)))
    with pytest.raises(ServerFailed, match="compressed"):
        transport.version()
    answer = transport.send(chat_request())
    assert isinstance(answer.error, ServerFailed)
    assert "compressed" in answer.error.message


def _endless() -> Iterator[bytes]:
    while True:
        yield b" " * 100_000


def test_an_answer_without_an_end_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_SMALL_BYTES", 1_000_000)
    monkeypatch.setattr(http, "MAX_ANSWER_BYTES", 1_000_000)

    def lines() -> Iterator[bytes]:
        while True:
            yield b'{"message":{"content":""}}\n' * 1000

    with pytest.raises(ServerFailed, match="did not end"):
        mocked(lambda _: httpx.Response(200, content=_endless())).version()
    answer = mocked(lambda _: httpx.Response(200, content=lines())).send(chat_request())
    assert answer.error is not None
    assert "did not end" in answer.error.message


def test_a_small_question_has_a_deadline_however_slowly_the_answer_drips() -> None:
    now = [0.0]

    def drip() -> Iterator[bytes]:
        while True:
            now[0] += 1.0
            yield b" "

    config = models_config()
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=drip()))
    client = httpx.Client(base_url=config.base_url, transport=transport)
    with pytest.raises(ServerBusy, match="within 15 s"):
        OllamaTransport(config, client, timer=lambda: now[0]).version()
    assert now[0] < http.INFO_SECONDS + 2
