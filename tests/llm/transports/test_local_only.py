"""What a server's name stands for, and where a server sends us: local prompts stay here."""

import http.server
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from testing.client.model_client import models_config
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.errors import ModelError, ServerUnreachable
from clean_room_agent.llm.transports import connections
from clean_room_agent.llm.transports.ollama import connect


@pytest.fixture
def redirecting() -> Iterator[tuple[str, str, list[str]]]:
    """(server that sends everybody on to another, that other, the paths that the other was asked for)."""
    asked: list[str] = []

    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
            """Silent."""

    class First(Other):
        def do_GET(self) -> None:
            self.send_response(307)
            self.send_header("Location", f"http://127.0.0.1:{other.server_port}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_POST(self) -> None:
            self.do_GET()

    other = http.server.HTTPServer(("127.0.0.1", 0), Other)
    first = http.server.HTTPServer(("127.0.0.1", 0), First)
    threads = [
        threading.Thread(target=one.serve_forever, args=(0.02,), daemon=True) for one in (other, first)
    ]
    for thread in threads:
        thread.start()
    yield f"http://127.0.0.1:{first.server_port}", f"http://127.0.0.1:{other.server_port}", asked
    for one, thread in zip((other, first), threads, strict=True):
        one.shutdown()
        one.server_close()
        thread.join()


def test_a_redirection_is_not_followed(redirecting: tuple[str, str, list[str]]) -> None:
    base_url, _, asked = redirecting
    with pytest.raises(ModelError):
        connect(models_config(base_url)).version()
    with connections.open_client(models_config(base_url), base_url) as client:
        assert client.post("/api/chat", content="a prompt").status_code == 307
    assert asked == []


def test_a_local_name_that_stands_for_another_machine_gets_no_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    with OllamaServer(["hi"]) as server:
        base_url = server.base_url.replace("127.0.0.1", "localhost")
        assert connect(models_config(base_url)).version()
        before = len(server.requests)
        # No address of another machine can be reached in a test: this one is taken for such.
        monkeypatch.setattr(connections, "is_loopback_address", lambda _: False)
        with pytest.raises(
            ServerUnreachable, match=r"resolves to (127\.0\.0\.1|::1) here, which is not this machine"
        ):
            connect(models_config(base_url)).version()
        assert len(server.requests) == before


def test_what_the_environment_knows_of_a_server_is_not_used_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "")
    for base_url in ("http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1"):
        with connections.open_client(models_config(base_url), base_url) as client:
            assert not client.trust_env
            assert not client.follow_redirects
            assert isinstance(client._transport_for_url(httpx.URL(base_url)), connections.LoopbackTransport)
