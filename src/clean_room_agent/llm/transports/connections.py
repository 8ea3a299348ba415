"""Connections to a model server: only to this machine if so configured, and with a deadline for a whole exchange.

A deadline holds even while headers, informational responses or trailers trickle in. httpcore's timeout applies to each
read, and it returns nothing meanwhile, so a read timeout does not limit an answer.

A server on this machine may not run a model itself but forward prompts, as Ollama does to its cloud. So where prompts may
not leave the machine, the server is asked about each model, and its answers are checked too.
"""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import httpx
from msgspec import Struct

from clean_room_agent.errors import ModelError
from clean_room_agent.llm.model_config import (
    CLOUD,
    ModelsConfig,
    is_cloud_tag,
    is_loopback,
    is_loopback_address,
)
from clean_room_agent.llm.transports import server_errors
from clean_room_agent.llm.transports.server_errors import RequestTarget

CONNECTED = "connection.connect_tcp.complete"
"""The event of httpcore's `trace` extension that has the connection."""


class Deadline:
    """Cuts the connection of one exchange when its time is over, so that a pending read ends."""

    def __init__(self) -> None:
        self.passed = False
        self.connected = False
        """Whether the server took the connection."""
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._timer: threading.Timer | None = None

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Note the connection; for use as the exchange's `trace` extension."""
        if event == CONNECTED:
            self.connected = True
            with self._lock:
                self._socket = info["return_value"].get_extra_info("socket")
            if self.passed:
                self._cut_connection()

    def set(self, seconds: float) -> None:
        """Set the time to so many seconds from now, whatever was set before."""
        self._cancel_timer()
        self._timer = threading.Timer(seconds, self.expire)
        self._timer.daemon = True
        self._timer.start()

    def expire(self) -> None:
        """Expire now, and for every later exchange."""
        self.passed = True
        self._cut_connection()

    def _cut_connection(self) -> None:
        with self._lock:
            if self._socket is not None:
                # Closing it would not wake a thread that reads from it.
                with contextlib.suppress(OSError):  # it was closed meanwhile
                    self._socket.shutdown(socket.SHUT_RDWR)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    @contextlib.contextmanager
    def running(self, seconds: float) -> Iterator[None]:
        """Set the time for the exchange in the body; behind it, nothing is cut any more."""
        self.set(seconds)
        try:
            yield
        finally:
            self._cancel_timer()
            with self._lock:
                self._socket = None


def open_client(config: ModelsConfig, base_url: str, *, key: str = "") -> httpx.Client:
    """A client for the server; nothing is sent yet. `key` goes into a header of each request.

    Connections are not kept alive, since a server may close one after a stream without saying so, and the next call on
    it would fail. Redirects are not followed. Proxy settings of the environment are ignored for this machine, or local
    prompts would leave it.
    """
    local, verify = is_loopback(config.base_url), config.base_url.startswith("https:")
    limits = httpx.Limits(max_keepalive_connections=0)
    return httpx.Client(
        base_url=base_url,
        headers={"authorization": f"Bearer {key}"} if key else {},
        trust_env=not local,
        verify=verify,
        limits=limits,
        transport=LoopbackTransport(verify=verify, limits=limits) if local else None,
    )


class LoopbackTransport(httpx.HTTPTransport):
    """Sends nothing if the server's name resolves to another machine, as a hosts file or a name server may have it."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The response.

        Raises:
            ConnectError: the connection was to another machine; it was closed before a byte was sent.
        """
        asked = request.extensions.get("trace")

        def trace(event: str, info: Mapping[str, Any]) -> None:
            _stay_here(event, info)
            if asked is not None:
                asked(event, info)

        request.extensions["trace"] = trace
        return super().handle_request(request)


def _stay_here(event: str, info: Mapping[str, Any]) -> None:
    if event != CONNECTED:
        return
    stream = info["return_value"]
    address = str(stream.get_extra_info("server_addr")[0])
    if not is_loopback_address(address):
        stream.close()
        raise httpx.ConnectError(f"its name resolves to {address} here, which is not this machine")


class Forwarding(Struct, frozen=True, kw_only=True):
    """What Ollama says about a model that it forwards, in any of its answers."""

    remote_host: str | None = None
    remote_model: str | None = None

    def destination(self, tag: str) -> str:
        """The machine that prompts for the model are forwarded to; "" for none."""
        cloud = CLOUD if self.remote_model or is_cloud_tag(tag) else ""
        return self.remote_host or cloud


class ForwardGuard:
    """Refuses models that a server forwards; each is asked about once, before its first prompt."""

    def __init__(self, destination: Callable[[str], str], *, allowed: bool) -> None:
        """`destination` asks the server where a model's prompts are forwarded to; "" for nowhere."""
        self._destination = destination
        self._local: set[str] = set()
        self._allowed = allowed

    def refusal(self, target: RequestTarget) -> ModelError | None:
        """The error for a model whose prompts would leave this machine, or for which that cannot be found out."""
        if self._allowed or target.tag in self._local:
            return None
        try:
            host = CLOUD if is_cloud_tag(target.tag) else self._destination(target.tag)
        except ModelError as error:
            return error
        if host:
            return server_errors.forwarded(target, host)
        self._local.add(target.tag)
        return None

    def seen(self, target: RequestTarget, said: Forwarding) -> ModelError | None:
        """The error for an answer that says it came from elsewhere, since the name may refer to another model by now."""
        host = said.destination(target.tag)
        return server_errors.forwarded(target, host) if host and not self._allowed else None


class LoadRequest:
    """A `ModelLoad` over one connection."""

    def __init__(self, send: Callable[[Deadline], None]) -> None:
        """`send` returns when the model is loaded, and fails once the deadline has passed."""
        self._send = send
        self._deadline = Deadline()

    def run(self) -> None:
        """Send the request, and wait for its end."""
        self._send(self._deadline)

    def cancel(self) -> None:
        """Cut the connection."""
        self._deadline.expire()
