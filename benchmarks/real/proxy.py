"""A proxy in front of the model server, which counts what each arm reads and writes, and refuses what is beyond its bound.

Each arm and task has an address of its own, `http://127.0.0.1:PORT/ARM/TASK`, with the server's paths below it; so any
client can be measured that can be given a base URL. What is counted is what the server says (`timings` of llama-server,
else `usage`). Every question and answer is a line of the account's file.
"""

import contextlib
import json
import threading
import time
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import httpx
from msgspec import Struct

COUNTED = ("/completions", "/completion", "/infill")
"""How the paths end that generate; all others are passed through."""
DROPPED = {"connection", "content-length", "transfer-encoding", "content-encoding", "host", "accept-encoding"}
"""Headers that hold for one connection only."""
END = b"data: [DONE]\n\n"
SPENT = "the token bound of this task is spent: {spent} of {bound} tokens"


class Usage(Struct, frozen=True, kw_only=True):
    """Tokens of one answer, or of several."""

    read: int = 0
    """Of prompts, processed."""
    cached: int = 0
    """Of prompts, that the server still had from an earlier prompt."""
    written: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            read=self.read + other.read,
            cached=self.cached + other.cached,
            written=self.written + other.written,
        )


class Account:
    """What one arm spends on one task. `bound` is for tokens read and written together, without cached ones."""

    def __init__(self, base_url: str, file: Path, bound: int) -> None:
        self.base_url = base_url
        self.bound = bound
        self.usage = Usage()
        self.answers = 0
        self.refused = 0
        self.lost = 0
        """Questions that the server did not answer."""
        self.seconds = 0.0
        """Sum over all requests; those that overlap count twice."""
        self._file = file
        self._lock = threading.Lock()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")

    @property
    def spent(self) -> int:
        """Tokens that count towards the bound."""
        return self.usage.read + self.usage.written

    def admits(self) -> bool:
        """Whether a further request is within the bound; the last one may exceed it by its own size."""
        with self._lock:
            admitted = self.spent < self.bound
            self.refused += not admitted
            return admitted

    def record(self, path: str, request: Any, answer: str, usage: Usage, status: int, seconds: float) -> None:
        """The exchange is counted and in the file."""
        line = {"path": path, "status": status, "seconds": round(seconds, 3), "request": request}
        line |= {"answer": answer, "read": usage.read, "cached": usage.cached, "written": usage.written}
        with self._lock:
            self.usage += usage
            self.answers += status == HTTPStatus.OK
            self.seconds += seconds
            with self._file.open("a", encoding="utf-8") as out:
                out.write(json.dumps(line) + "\n")


class CountingProxy:
    """Use as a context manager; it listens on the loopback interface from entry to exit."""

    def __init__(self, server: str) -> None:
        """`server`: the model server's URL, without `/v1`."""
        # A kept connection may be closed by the server in the moment in which it is used again.
        limits = httpx.Limits(max_keepalive_connections=0)
        self.client = httpx.Client(base_url=server, timeout=None, trust_env=False, limits=limits)
        self.accounts: dict[str, Account] = {}
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.proxy = self

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self.client.close()

    def open_account(self, arm: str, task: str, file: Path, bound: int) -> Account:
        """An account that has spent nothing, in place of an earlier one of the same names."""
        account = Account(f"http://127.0.0.1:{self._http.server_port}/{arm}/{task}", file, bound)
        self.accounts[f"{arm}/{task}"] = account
        return account


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    proxy: CountingProxy


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: object) -> None:
        """The record is the log."""

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    def _answer(self, body: bytes) -> None:
        _, arm, task, *rest = [*self.path.split("/"), "", ""]
        account = self.server.proxy.accounts.get(f"{arm}/{task}")
        path = "/" + "/".join(rest).rstrip("/")
        if account is None:
            self._refuse(HTTPStatus.NOT_FOUND, "no such task")
            return
        try:
            if not path.endswith(COUNTED):
                self._relay(path, body)
            elif not account.admits():  # 401: the one status after which no client waits and tries again
                self._refuse(HTTPStatus.UNAUTHORIZED, SPENT.format(spent=account.spent, bound=account.bound))
            else:
                self._count(account, path, json.loads(body))
        except httpx.TransportError as error:
            account.lost += 1
            self._refuse(HTTPStatus.BAD_GATEWAY, f"the model's server did not answer: {error}")

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        error = {"error": {"message": message, "type": "bound_spent", "code": int(status)}}
        self._send(status, {"Content-Type": "application/json"}, json.dumps(error).encode())

    def _send(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in DROPPED:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _relay(self, path: str, body: bytes) -> None:
        response = self.server.proxy.client.request(self.command, path, content=body, headers=self._headers())
        self._send(response.status_code, response.headers, response.content)

    def _headers(self) -> dict[str, str]:
        return {name: value for name, value in self.headers.items() if name.lower() not in DROPPED}

    def _count(self, account: Account, path: str, request: dict[str, Any]) -> None:
        sent = dict(request)
        if sent.get("stream"):
            sent["timings_per_token"] = True  # so an answer that the client stops is counted, too
            sent.setdefault("stream_options", {"include_usage": True})  # other servers than llama-server
        begun = time.monotonic()
        reply = Reply()
        with self.server.proxy.client.stream("POST", path, json=sent, headers=self._headers()) as response:
            streamed = bool(request.get("stream")) and response.status_code == HTTPStatus.OK
            if streamed:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the client has read enough
                    self._stream(response, reply)
            else:
                reply.add(response.read())
            seconds = time.monotonic() - begun
            account.record(path, request, reply.text, reply.usage, response.status_code, seconds)
            # The end comes after the counting: the client's next request may follow at once.
            if not streamed:
                self._send(response.status_code, response.headers, response.content)
            elif reply.ended:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    self.wfile.write(END)

    def _stream(self, response: httpx.Response, reply: "Reply") -> None:
        """The answer has been passed on, but for `END`."""
        self.send_response(response.status_code)
        self.send_header("Content-Type", response.headers.get("Content-Type", "text/event-stream"))
        self.send_header("Connection", "close")  # which ends the body
        self.end_headers()
        self.close_connection = True
        for line in response.iter_lines():
            if line == END.decode().strip():
                reply.ended = True
                return
            if line.startswith("data: {"):
                reply.add(line.removeprefix("data: ").encode())
            self.wfile.write(line.encode() + b"\n")
            self.wfile.flush()


class Reply:
    """An answer as it is put together from what the server sends: one object, or the events of a stream."""

    def __init__(self) -> None:
        self.text = ""
        self.usage = Usage()
        self.ended = False
        """Whether a stream has said that it is complete."""

    def add(self, content: bytes) -> None:
        """The text grows by what is in `content`; counts are the latest that were told."""
        try:
            told = json.loads(content)
        except ValueError:  # an error page
            self.text += content.decode(errors="replace")
            return
        self.text += "".join(texts_of(told))
        if timings := told.get("timings"):
            self.usage = Usage(
                read=timings.get("prompt_n", 0),
                cached=timings.get("cache_n", 0),
                written=timings.get("predicted_n", 0),
            )
        elif usage := told.get("usage"):
            cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
            self.usage = Usage(
                read=usage.get("prompt_tokens", 0) - cached,
                cached=cached,
                written=usage.get("completion_tokens", 0),
            )


def texts_of(told: Mapping[str, Any]) -> Iterator[str]:
    """What was generated, in an answer or a part of one; what went wrong, in an error."""
    yield told.get("content") or ""  # /completion
    for choice in told.get("choices") or ():
        yield (choice.get("message") or choice.get("delta") or {}).get("content") or choice.get("text") or ""
    if error := told.get("error"):
        yield str(error)
