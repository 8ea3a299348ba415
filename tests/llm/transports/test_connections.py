"""A server that never stops sending, and never says anything, is left at the deadline."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import httpx
import pytest
from testing.client.chat_request import chat_request
from testing.patience import PATIENCE

from clean_room_agent.errors import ModelError, ServerBusy, ServerTimeout
from clean_room_agent.llm.model_config import Timeouts
from clean_room_agent.llm.transports.connections import Deadline, LoadRequest, LoopbackTransport
from clean_room_agent.llm.transports.http import HttpServer, StreamedAnswer
from clean_room_agent.llm.transports.server_errors import OLLAMA, RequestTarget

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n"
DRIPS = {
    "headers": (HEAD + b"x: ", b"a"),
    "early answers": (b"", b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n"),
    "trailers": (CHUNKED + b"0\r\n", b"x: a\r\n"),
    "extensions of a chunk": (CHUNKED + b"1;", b"a"),
}
DROP_SECONDS = 0.01


class Deaf(StreamedAnswer):
    """An answer for which nothing counts."""

    complete = False

    def take(self, line: bytes) -> ModelError | None:
        return None

    def refused(self, status: int, body: str) -> ModelError:
        raise AssertionError(body)

    def end(self) -> ModelError | None:
        raise AssertionError("it never ends")


@contextlib.contextmanager
def dripping(first: bytes, then: bytes) -> Iterator[str]:
    """The address of a server that answers each request with `first` and with `then` for ever."""

    def answer(connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            connection.recv(65_536)
            connection.sendall(first)
            while not over.is_set():
                connection.sendall(then)
                time.sleep(DROP_SECONDS)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        over.set()
        listener.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def door(kind: str, timeouts: Timeouts) -> Iterator[tuple[HttpServer, RequestTarget]]:
    with dripping(*DRIPS[kind]) as url, httpx.Client(base_url=url, transport=LoopbackTransport()) as http:
        yield HttpServer(http, timeouts), RequestTarget(server=url, tag="m", dialect=OLLAMA)


@pytest.mark.parametrize("kind", DRIPS)
def test_a_small_question_ends(kind: str) -> None:
    late = pytest.raises(ServerBusy, match=r"was not answered within 0\.3 s")
    with door(kind, Timeouts()) as (asked, target), late:
        asked.tell("GET", "/", target, seconds=0.3)


@pytest.mark.parametrize("kind", DRIPS)
def test_a_streamed_answer_ends(kind: str) -> None:
    brief = Timeouts(connect=0.1, first_byte=0.2, idle=PATIENCE, total=0.4)
    with door(kind, brief) as (asked, target):
        error = asked.stream("/", "{}", Deaf(target, tuple, chat_request()), target)
    assert isinstance(error, ServerTimeout), error


def test_who_cancels_ends_the_request_under_way_and_every_later_one() -> None:
    seen: list[bool] = []

    def send(deadline: Deadline) -> None:
        seen.append(deadline.passed)
        load.cancel()
        seen.append(deadline.passed)

    load = LoadRequest(send)
    load.run()
    load.run()
    assert seen == [False, True, True, True]
