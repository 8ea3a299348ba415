"""A model server on 127.0.0.1 that speaks Ollama's protocol; only the model's mind is a script.

It does what real ones do, the bad habits included. Faults of the server are arguments of `OllamaServer`; faults of
one answer are fields of `Answer`. What the model "reads" is what is left after the server cut it, so an answerer
that looks at its prompt cannot know more than a model would.
"""

import contextlib
import hashlib
import json
import socket
import struct
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from msgspec import Struct, field

from testing.patience import wait_until
from testing.servers.ollama_script import (
    FRAMING,
    Answer,
    Answerer,
    ChatCall,
    Fills,
    Overflow,
    behind_gap,
    count_tokens,
    cut_prompt,
    gap_of,
    overflow_message,
    probe_answer,
    stopped,
    stream_chunks,
    stream_lines,
    texts_of,
)

DEFAULT_MODELS = ("coder:3b", "thinker:4b")
DEFAULT_WINDOW = 4096
TRAINED_WINDOW = 262_144
CHAT_PATHS = ("/api/chat", "/v1/chat/completions")
FILL_PATHS = ("/api/generate", "/v1/completions", "/infill")
PARAMETERS = (
    'stop                           "<|im_start|>"\nstop                           "<|im_end|>"\ntop_p 0.9'
)
"""What a model's files say of sampling, as /api/show words it."""
LOAD_OPTIONS = ("num_ctx", "num_batch", "num_gpu", "num_thread", "use_mmap")


class _State(Struct, kw_only=True):
    """What the server has seen. Guarded by `lock`."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    requests: list[dict[str, Any]] = field(default_factory=list)
    calls: list[ChatCall] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    loaded: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    reloads: int = 0
    active: int = 0
    peak: int = 0


class OllamaServer:
    """Use as a context manager. `script` is an answerer, or a list of answers that are given in order."""

    def __init__(
        self,
        script: Answerer | Iterable[Answer | str],
        *,
        models: Sequence[str] = DEFAULT_MODELS,
        overflow: Overflow = "plain",
        largest_window: int = TRAINED_WINDOW,
        logprobs: bool = True,
        version: str = "0.15.0",
        forwards: Mapping[str, str] | None = None,
        load_seconds: float = 0.0,
        fills: Fills = "",
        port: int = 0,
    ) -> None:
        """`version`: from 0.34.1 on, adapters are refused. `forwards`: the machines that models' prompts are sent on to.
        `load_seconds`: what each loading of a model takes. `port`: 0 for a free one.
        """
        self.models = tuple(models)
        self.forwards = dict(forwards or {})
        self.overflow = overflow
        self.largest_window = largest_window
        self.logprobs = logprobs
        self.version = version
        self.load_seconds = load_seconds
        self.fills: Fills = fills
        self._loading = threading.Lock()
        self.loads: list[dict[str, Any]] = []
        """The requests that only load a model."""
        self.stopping = threading.Event()
        self.state = _State()
        self.blobs: dict[str, bytes] = {}
        """What was uploaded, by digest."""
        self.created: list[dict[str, Any]] = []
        """The requests that made models."""
        self._answerer = script if callable(script) else _in_turn(script)
        self._http = _Http(("127.0.0.1", port), _Handler)
        self._http.owner = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stopping.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def base_url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The bodies of all chat requests, refused ones too."""
        return self.state.requests

    @property
    def calls(self) -> list[ChatCall]:
        """The chat requests that reached the model."""
        return self.state.calls

    @property
    def reloads(self) -> int:
        """How often a loaded model had to be loaded again because its load options changed."""
        return self.state.reloads

    @property
    def peak(self) -> int:
        """The most chat requests that waited for the beginning of their answer at a time."""
        return self.state.peak

    def forwarding(self, tag: str) -> dict[str, str]:
        """What is said of a model that another machine answers for."""
        host = self.forwards.get(tag)
        return {"remote_host": host, "remote_model": tag.removesuffix("-cloud")} if host else {}

    def window(self, body: dict[str, Any]) -> int:
        """The window that the request gets, in tokens."""
        return min(int(body.get("options", {}).get("num_ctx", DEFAULT_WINDOW)), self.largest_window)

    def schema(self, body: dict[str, Any]) -> Any:
        """The schema that the request holds the answer to; None without one."""
        return body.get("format")

    def load(self, body: dict[str, Any]) -> None:
        """Holds the model in memory as the request wants it."""
        options = body.get("options", {})
        wanted = (*(options.get(name) for name in LOAD_OPTIONS), body.get("shift"))
        with self._loading:
            with self.state.lock:
                held = self.state.loaded.get(body["model"])
                self.state.reloads += held is not None and held != wanted
            if held != wanted:
                self.stopping.wait(self.load_seconds)
            with self.state.lock:
                self.state.loaded[body["model"]] = wanted

    def answer(self, body: dict[str, Any], system: str, prompt: str) -> Answer:
        """The model's answer to what it reads."""
        schema, gap = self.schema(body), gap_of(body)
        with self.state.lock:
            call = ChatCall(
                number=len(self.state.calls),
                model=body["model"],
                system=system,
                prompt=prompt,
                schema=schema if isinstance(schema, dict) else None,
                options=body.get("options", {}),
                body=body,
                gap=gap,
            )
            self.state.calls.append(call)
        known = None if gap is None else probe_answer(gap, self.fills)
        said = self._answerer(call) if known is None else known
        answer = Answer(text=said) if isinstance(said, str) else said
        return stopped(answer, body.get("stop") or body.get("options", {}).get("stop", []))


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    owner: OllamaServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Http
    _waiting = False
    """Whether a chat request is here whose answer has not begun."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Quiet."""

    def do_GET(self) -> None:
        owner = self.server.owner
        owner.state.paths.append(self.path)
        if self.path == "/api/version":
            self._json(200, {"version": owner.version})
        elif self.path == "/api/tags":
            self._json(200, {"models": [_described(tag) | owner.forwarding(tag) for tag in owner.models]})
        elif self.path == "/api/ps":
            running = sorted(owner.state.loaded.items())
            self._json(
                200, {"models": [_described(tag) | {"context_length": held[0]} for tag, held in running]}
            )
        else:
            self._plain(404, "404 page not found")

    def do_HEAD(self) -> None:
        digest = self.path.removeprefix("/api/blobs/")
        self.send_response(200 if digest in self.server.owner.blobs else 404)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        owner = self.server.owner
        owner.state.paths.append(self.path)
        if self.path.startswith("/api/blobs/"):
            self._keep(self.path.removeprefix("/api/blobs/"))
            return
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/api/show":
            self._show(body)
        elif self.path == "/api/create":
            self._create(body)
        elif self.path == "/api/generate" and gap_of(body) is None:
            self._load(body)
        elif self.path in FILL_PATHS and not owner.fills:
            self._refuse_gap(body)
        elif self.path in CHAT_PATHS or self.path in FILL_PATHS:
            with owner.state.lock:
                owner.state.requests.append(body)
                owner.state.active += 1
                owner.state.peak = max(owner.state.peak, owner.state.active)
            self._waiting = True
            try:
                self._chat(body)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True
            finally:
                self._answering()
        else:
            self._plain(404, "404 page not found")

    def _refuse_gap(self, body: dict[str, Any]) -> None:
        self._json(400, {"error": f"{body['model']!r} does not support insert"})

    def _show(self, body: dict[str, Any]) -> None:
        if body["model"] not in self.server.owner.models:
            self._json(404, {"error": f"model '{body['model']}' not found"})
            return
        info = {"general.architecture": "qwen3", "qwen3.context_length": TRAINED_WINDOW}
        told: dict[str, Any] = {"model_info": info, "capabilities": ["completion", "tools"]}
        told |= self.server.owner.forwarding(body["model"])
        self._json(200, {**told, "template": "{{ .Prompt }}", "parameters": PARAMETERS, "system": ""})

    def _keep(self, digest: str) -> None:
        content = self.rfile.read(int(self.headers["content-length"]))
        if f"sha256:{hashlib.sha256(content).hexdigest()}" != digest:
            self._json(400, {"error": "digest mismatch"})
            return
        self.server.owner.blobs[digest] = content
        self._plain(201, "")

    def _create(self, body: dict[str, Any]) -> None:
        owner = self.server.owner
        named = {**body.get("files", {}), **body.get("adapters", {})}
        release = tuple(int(part) for part in owner.version.split("."))
        if body.get("adapters") and release >= (0, 34, 1):
            self._json(400, {"error": "LoRA adapters are no longer supported"})
        elif missing := [digest for digest in named.values() if digest not in owner.blobs]:
            self._json(400, {"error": f"blob {missing[0]} not found"})
        elif "from" in body and body["from"] not in owner.models:
            self._json(404, {"error": f"model '{body['from']}' not found"})
        else:
            owner.created.append(body)
            owner.models = (*owner.models, body["model"])
            self._json(200, {"status": "success"})

    def _load(self, body: dict[str, Any]) -> None:
        """A request without a prompt, which is all that is wanted of this path."""
        owner = self.server.owner
        owner.loads.append(body)
        if body["model"] not in owner.models:
            self._json(404, {"error": f"model '{body['model']}' not found"})
            return
        owner.load(body)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._json(200, {"model": body["model"], "response": "", "done": True, "done_reason": "load"})

    def _chat(self, body: dict[str, Any]) -> None:
        owner = self.server.owner
        if body["model"] not in owner.models:
            self._json(404, {"error": f"model '{body['model']}' not found"})
            return
        system, prompt = texts_of(body)
        window = owner.window(body)
        need = count_tokens(system) + count_tokens(prompt) + count_tokens(behind_gap(body)) + FRAMING
        if need > window:
            refuses = (
                owner.overflow != "silent" and body.get("truncate") is False and body.get("shift") is False
            )
            if refuses:
                self._json(400, {"error": overflow_message(owner.overflow, need, window)})
                return
            system, prompt = cut_prompt(system, prompt, window)
            need = window
        owner.load(body)
        self._send(body, owner.answer(body, system, prompt), need)

    def _send(self, body: dict[str, Any], answer: Answer, need: int) -> None:
        if answer.status != 200:
            self._json(answer.status, self._worded(answer.error))
            return
        if answer.raw_body is not None:
            self._plain(200, answer.raw_body)
            return
        if answer.close == "before_headers":
            self._break()
            return
        owner = self.server.owner
        wait_until(
            lambda: owner.peak >= answer.peers or owner.stopping.is_set(), f"{answer.peers} requests at once"
        )
        owner.stopping.wait(answer.load_seconds)
        self._begin()
        if answer.close == "before_token":
            self._break()
            return
        for number, data in enumerate(self._chunks(body, answer, need)):
            if number and answer.pause_seconds:
                self.server.owner.stopping.wait(answer.pause_seconds)
            self._chunk(data)
        if answer.close is not None:
            self.close_connection = True
            return
        self.wfile.write(b"0\r\n\r\n")

    def _worded(self, error: str) -> dict[str, Any]:
        return {"error": error}

    def _chunks(self, body: dict[str, Any], answer: Answer, need: int) -> Iterator[bytes]:
        lines = stream_lines(body, answer, need, logprobs=self.server.owner.logprobs)
        said = self.server.owner.forwarding(body["model"])
        return stream_chunks((line | said for line in lines), answer)

    def _answering(self) -> None:
        """The request no longer waits. Counted from here, because a client that has read its answer may ask again
        before this thread has noticed that it is done."""
        owner = self.server.owner
        with owner.state.lock:
            owner.state.active -= self._waiting
            self._waiting = False

    def _begin(self) -> None:
        self._answering()
        self.send_response(200)
        self.send_header("content-type", "application/x-ndjson")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self.wfile.flush()

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def _break(self) -> None:
        """The connection is reset, as when a process dies."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def _json(self, status: int, data: dict[str, Any]) -> None:
        self._plain(status, json.dumps(data), kind="application/json")

    def _plain(self, status: int, text: str, *, kind: str = "text/plain") -> None:
        self._answering()
        data = text.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _in_turn(answers: Iterable[Answer | str]) -> Answerer:
    waiting = iter(answers)
    lock = threading.Lock()

    def answerer(call: ChatCall) -> Answer | str:
        with lock:
            return next(waiting, Answer(status=500, error=f"the script has no answer for call {call.number}"))

    return answerer


def _described(tag: str) -> dict[str, Any]:
    return {"name": tag, "model": tag, "size": 2_000_000_000, "digest": f"{sum(tag.encode()):064x}"}
