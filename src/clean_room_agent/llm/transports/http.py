"""Streaming an answer from a model server over HTTP, line by line and with deadlines; and small requests. Independent
of any server's dialect. Import it only when a server is about to be asked.
"""

import abc
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

import httpx
from msgspec import Meta, Struct

from clean_room_agent.errors import CallInterrupted, ModelError
from clean_room_agent.json_values import from_json, from_plain
from clean_room_agent.llm.answer_rules import CopyGuard, RepetitionGuard
from clean_room_agent.llm.answers import TokenChoice
from clean_room_agent.llm.model_config import Timeouts
from clean_room_agent.llm.transport import ChatRequest, Finish, RawAnswer, WindowRefusal
from clean_room_agent.llm.transports import server_errors
from clean_room_agent.llm.transports.connections import Deadline
from clean_room_agent.llm.transports.server_errors import RequestTarget

MAX_LINE_BYTES = 8_000_000
INFO_SECONDS = 15.0
MAX_ERROR_BYTES = 65_536
MAX_SMALL_BYTES = 32_000_000
"""Of the answer to a small request; tokenising a prompt that fills a large window returns many numbers."""
MAX_ANSWER_BYTES = 256_000_000
"""Of a streamed answer, log probabilities included."""
PLAIN_BYTES = {"accept-encoding": "identity"}
STREAM_HEADERS = {"content-type": "application/json", "accept-encoding": "identity", "connection": "close"}
Count = Annotated[int, Meta(ge=0, lt=2**53)]
"""A number of tokens as reported by a server, limited to what databases and JSON represent exactly."""
ReplyT = TypeVar("ReplyT")


ENDINGS: Mapping[str, Finish] = {
    **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "max_length", "model_length", "length_limit"), "length"),
    **dict.fromkeys(
        ("limit", "token_limit", "max_output_tokens", "max_new_tokens", "context_length"), "length"
    ),
    **dict.fromkeys(("context_length_exceeded", "model_context_window_exceeded", "time_limit"), "length"),
    **dict.fromkeys(("tool_calls", "tool_call", "tool_use", "function_call"), "tool_call"),
}
"""How an answer ended, by the words of servers."""
FAILURES = server_errors.FILTERS | {"abort", "aborted", "cancelled", "canceled", "error", "load", "unload"}
"""Reasons that make an answer of no use, whatever came of it."""
BOM = b"\xef\xbb\xbf"
_LONE = re.compile("[\ud800-\udc7f\udd00-\udfff]")


class LineTooLongError(ValueError):
    """A line grew beyond `MAX_LINE_BYTES`."""


class LineSplitter:
    """Assembles lines from chunks. Lines have no line end; blank ones, and a byte order mark, are left out.

    Only a line feed ends a line: `httpx.Response.iter_lines` also ends one at characters, such as U+2028, that JSON texts
    may hold. Parts are joined once a line is whole, so that a long line in small chunks takes linear time.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._first = True
        self._held = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes.

        Raises:
            LineTooLongError: the current line is too long.
        """
        first, *others = data.split(b"\n")
        self._append_part(first)
        if not others:
            return []
        lines = [self._take_line(), *others[:-1]]
        self._append_part(others[-1])
        return [line for line in lines if line.strip()]

    def end(self) -> list[bytes]:
        """The last line, if it was not terminated; the lines of a stream of events that has no line feed at all: carriage returns end
        lines there, too.
        """
        is_whole = self._first
        last = self._take_line()
        lines = last.split(b"\r") if is_whole and not last.lstrip().startswith(b"{") else [last]
        return [line for line in lines if line.strip()]

    def _append_part(self, part: bytes) -> None:
        self._held += len(part)
        if self._held > MAX_LINE_BYTES:
            raise LineTooLongError(f"a line of more than {MAX_LINE_BYTES} bytes")
        self._parts.append(part)

    def _take_line(self) -> bytes:
        line = b"".join(self._parts)
        if self._first:
            line, self._first = line.removeprefix(BOM), False
        self._parts.clear()
        self._held = 0
        return line


class ServerVersion(Struct, frozen=True, kw_only=True):
    """What a server answers that is asked for its version."""

    version: str


class StreamedAnswer(abc.ABC):
    """An answer in progress: its pieces, watched as they come. Each dialect has a subclass that reads its lines."""

    missing: ClassVar[frozenset[int]] = frozenset({httpx.codes.NOT_FOUND})
    """The statuses by which a server may say that it lacks the model."""

    def __init__(
        self, target: RequestTarget, known: Callable[[], tuple[str, ...]], request: ChatRequest
    ) -> None:
        """`known` returns the models that the server has."""
        self._target = target
        self._known = known
        self._tokens: list[TokenChoice] = []
        self._texts: tuple[list[str], list[str]] = ([], [])
        """The pieces of the answer, and those of what the model thought."""
        self._guards = (RepetitionGuard(request.shown), RepetitionGuard())
        self._copies = CopyGuard(request.opening)
        self._heard = request.heard
        self._called_a_tool = False
        self._ended = False
        """Whether the last line has arrived."""
        self.reason = ""
        """Why the answer ended, in the server's word; "" before it did."""
        self.prompt_tokens: int | None = None
        self.completion_tokens: int | None = None
        self.cached_tokens: int | None = None
        self.refusal: WindowRefusal | None = None

    @abc.abstractmethod
    def take(self, line: bytes) -> ModelError | None:
        """Add one line of the stream; return the error that it reports."""

    @abc.abstractmethod
    def end(self) -> ModelError | None:
        """Nothing more will arrive; return the error if the answer is incomplete."""

    @property
    @abc.abstractmethod
    def complete(self) -> bool:
        """Whether everything that matters has arrived, so that a later failure changes nothing."""

    @property
    def done(self) -> bool:
        """Whether to stop reading: the last line has arrived, or the answer is a repetition or a copy."""
        return self._ended or self._has_repetition or self._copies.tripped

    @property
    def begun(self) -> bool:
        """Whether a token has arrived."""
        return any(self._texts)

    @property
    def text(self) -> str:
        """The answer so far."""
        return whole_characters("".join(self._texts[0]))

    @property
    def thinking(self) -> str:
        """What the model thought so far."""
        return whole_characters("".join(self._texts[1]))

    def refused(self, status: int, body: str) -> ModelError:
        """The error that the server reports instead of an answer, or within one (status 200)."""
        known = self._known() if status in self.missing else ()
        error, self.refusal = server_errors.reported(self._target, status, body, known=known)
        return error

    def as_answer(self, body: str, error: ModelError | None) -> RawAnswer:
        """Everything that arrived, with the error if there was one."""
        return RawAnswer(
            request_body=body,
            text=self.text,
            thinking=self.thinking,
            finish=self._finish_reason(),
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            cached_tokens=self.cached_tokens,
            tokens=tuple(self._tokens),
            error=error,
            refusal=self.refusal,
        )

    def _add_pieces(
        self, text: str | None, thinking: str | None = None, calls: list[Any] | None = None
    ) -> None:
        """Append the pieces that are not empty, and notify whoever follows the call. Calls of tools are kept as JSON, for
        the record.
        """
        if calls:
            self._called_a_tool = True
            text = (text or "") + json.dumps(calls)
        for piece, kept, guard in zip((text, thinking), self._texts, self._guards, strict=True):
            if piece:
                kept.append(piece)
                guard.feed(piece)
                self._heard()
        self._copies.feed(text or "")

    @property
    def _has_repetition(self) -> bool:
        return any(guard.tripped for guard in self._guards)

    def _finish_reason(self) -> Finish:
        """How the answer ended; a server may have stopped for a reason that nobody knows."""
        if self._copies.tripped:
            return "copied"
        if self._has_repetition and self.reason != "stop":
            return "repeated"
        return "tool_call" if self._called_a_tool else ENDINGS.get(self.reason.lower(), "stop")

    def _early_end_error(self) -> ModelError | None:
        """The error for an answer that ended for a reason that makes it of no use: an unknown one behind a text does not."""
        reason = self.reason.lower()
        if reason in FAILURES or (reason not in ENDINGS and not self.begun):
            return server_errors.ended_early(self._target, self.reason)
        return None

    def _protocol_error(self, text: bytes) -> ModelError:
        """The error for something that is no part of the protocol."""
        return server_errors.not_the_protocol(
            self._target, f"it sent {text[:200].decode('utf-8', 'replace')!r}"
        )


def read_piece(line: bytes, kind: type[ReplyT]) -> ReplyT:
    """The piece of an answer in the line. Halves of a character, which some servers put into two pieces, are kept as lone
    surrogates, for `whole_characters`.

    Raises:
        ValueError: it is no `kind`.
    """
    try:
        return from_json(line, kind)
    except ValueError:
        try:
            plain = json.loads(line.decode("utf-8", "surrogateescape"), strict=False)
        except RecursionError as exc:
            raise ValueError(str(exc)) from exc
        return from_plain(plain, kind)


def whole_characters(text: str) -> str:
    """The text with halves of characters, of UTF-16 or UTF-8, put together; a half that stays alone is U+FFFD."""
    if text.isascii():
        return text
    paired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return _LONE.sub("\ufffd", paired).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


class HttpServer:
    """Sends requests to one server, and translates what goes wrong on the way."""

    def __init__(
        self,
        http: httpx.Client,
        timeouts: Timeouts,
        *,
        secret: str = "",
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        """`secret` is removed from whatever the server reports, since that is recorded."""
        self._http = http
        self._timeouts = timeouts
        self._secret = secret
        self._timer = timer

    def stream(
        self, path: str, body: str, receiver: StreamedAnswer, target: RequestTarget
    ) -> ModelError | None:
        """Fill `receiver` with the answer to a POST of `body`; return the error that ended it, of which Ctrl-C is one."""
        try:
            return self._stream_request(path, body, receiver, target)
        except KeyboardInterrupt:
            return CallInterrupted("interrupted")

    def _stream_request(
        self, path: str, body: str, receiver: StreamedAnswer, target: RequestTarget
    ) -> ModelError | None:
        limits = self._timeouts
        first = min(limits.first_byte, limits.total)
        # httpcore looks the read limit up when it begins to read the body, so it can be changed after the headers.
        waits = {"connect": limits.connect, "write": first, "read": first, "pool": None}
        answered = False
        deadline = self._timer() + limits.total
        cut = Deadline()
        try:
            with (
                cut.running(limits.connect + first),
                self._http.stream(
                    "POST",
                    path,
                    content=body,
                    headers=STREAM_HEADERS,
                    extensions={"timeout": waits, "trace": cut.trace},
                ) as response,
            ):
                answered = True
                cut.set(deadline - self._timer())
                waits["read"] = min(limits.idle, limits.total)
                if response.status_code != httpx.codes.OK:
                    return receiver.refused(
                        response.status_code, self._without_secret(_bounded_text(response))
                    )
                return self._read_stream(response, receiver, target, deadline)
        except (httpx.ConnectError, httpx.ConnectTimeout) as exc:
            return server_errors.refused_connection(target, str(exc) or type(exc).__name__)
        except httpx.HTTPError as exc:
            if receiver.complete:
                return None
            if not cut.passed and not isinstance(exc, httpx.TimeoutException):
                return server_errors.broken_off(target, str(exc) or type(exc).__name__, begun=receiver.begun)
            key, limit = ("idle", limits.idle) if answered else ("first_byte", limits.first_byte)
            if limit > limits.total or (answered and cut.passed):
                key, limit = "total", limits.total
            return server_errors.late(target, key, limit)

    def ask(
        self,
        method: str,
        path: str,
        kind: type[ReplyT],
        target: RequestTarget,
        *,
        payload: dict[str, Any] | None = None,
        known: Callable[[], tuple[str, ...]] = tuple,
    ) -> ReplyT:
        """The answer to a small request; `known` are the models that are listed if this one is missing.

        Raises:
            ModelError: the server cannot be reached, reports an error, or returns something other than `kind`.
        """
        status, content = self._exchange_small(method, path, target, INFO_SECONDS, json=payload)
        text = content[:MAX_ERROR_BYTES].decode("utf-8", "replace")
        if status != httpx.codes.OK:
            there = known() if status == httpx.codes.NOT_FOUND else ()
            raise server_errors.reported(target, status, self._without_secret(text), known=there)[0]
        try:
            return from_json(content, kind)
        except ValueError as exc:
            raise server_errors.not_the_protocol(target, f"{path} answered {text[:200]!r}") from exc

    def ask_if_there(
        self, path: str, kind: type[ReplyT], target: RequestTarget, *, seconds: float = INFO_SECONDS
    ) -> ReplyT | None:
        """The answer to a small request; None if the server has no such path, or returns something other than `kind`.

        Raises:
            ModelError: the server cannot be reached, is busy or failed, so it is unknown what it has.
        """
        status, content = self._exchange_small("GET", path, target, seconds)
        if httpx.codes.is_server_error(status) or status == httpx.codes.TOO_MANY_REQUESTS:
            said = content[:MAX_ERROR_BYTES].decode("utf-8", "replace")
            raise server_errors.reported(target, status, self._without_secret(said))[0]
        try:
            return from_json(content, kind) if status == httpx.codes.OK else None
        except ValueError:
            return None

    def tell(
        self,
        method: str,
        path: str,
        target: RequestTarget,
        *,
        payload: dict[str, Any] | None = None,
        file: Path | None = None,
        seconds: float = INFO_SECONDS,
        cut: Deadline | None = None,
    ) -> tuple[int, str]:
        """Send `payload` as JSON, or the bytes of `file`, and return the status and text of the answer. With `cut`, the
        caller can end it early.

        Raises:
            ServerUnreachable: nobody answers.
            ServerBusy: nothing came within `seconds`.
        """
        if file is None:
            status, said = self._exchange_small(method, path, target, seconds, cut, json=payload)
        else:
            with file.open("rb") as content:
                status, said = self._exchange_small(method, path, target, seconds, content=content)
        return status, self._without_secret(said[:MAX_ERROR_BYTES].decode("utf-8", "replace"))

    def _exchange_small(
        self,
        method: str,
        path: str,
        target: RequestTarget,
        seconds: float,
        cut: Deadline | None = None,
        **sent: Any,
    ) -> tuple[int, bytes]:
        """Status and content of an answer that arrives within `seconds`, uncompressed and of bounded size.

        Raises:
            ServerBusy: the server took the connection, but did not answer in time.
            ModelError: it cannot be reached, or sends what no server should.
        """
        deadline = self._timer() + seconds
        limit, body = cut or Deadline(), bytearray()
        try:
            with (
                limit.running(seconds),
                self._http.stream(
                    method,
                    path,
                    headers=PLAIN_BYTES,
                    timeout=httpx.Timeout(seconds, connect=min(seconds, INFO_SECONDS)),
                    extensions={"trace": limit.trace},
                    **sent,
                ) as response,
            ):
                if _is_compressed(response):
                    raise server_errors.not_the_protocol(target, f"{path} answered with compressed bytes")
                for data in response.iter_bytes():
                    body += data
                    if len(body) > MAX_SMALL_BYTES:
                        raise server_errors.not_the_protocol(target, f"the answer to {path} did not end")
                    if self._timer() > deadline:
                        raise server_errors.busy(target, f"{path} was not answered within {seconds:g} s")
                return response.status_code, bytes(body)
        except httpx.TransportError as exc:
            late = f"{path} was not answered within {seconds:g} s"
            if limit.connected and (limit.passed or isinstance(exc, httpx.TimeoutException)):
                raise server_errors.busy(target, late) from exc
            said = late if limit.passed else str(exc) or type(exc).__name__
            raise server_errors.refused_connection(target, said) from exc

    def _read_stream(
        self, response: httpx.Response, receiver: StreamedAnswer, target: RequestTarget, deadline: float
    ) -> ModelError | None:
        lines = LineSplitter()
        try:
            for data in _bounded_bytes(response):
                for line in lines.feed(data):
                    error = receiver.take(line)
                    if error is not None or receiver.done:
                        return error
                if self._timer() > deadline:
                    return (
                        None
                        if receiver.complete
                        else server_errors.late(target, "total", self._timeouts.total)
                    )
        except LineTooLongError as exc:
            return server_errors.not_the_protocol(target, str(exc))
        for line in lines.end():
            error = receiver.take(line)
            if error is not None or receiver.done:
                return error
        return receiver.end()

    def _without_secret(self, text: str) -> str:
        return text.replace(self._secret, "(the key)") if self._secret else text


def _bounded_bytes(response: httpx.Response) -> Iterator[bytes]:
    """The bytes of a streamed answer. Raises LineTooLongError if they are compressed, or too many."""
    if _is_compressed(response):
        raise LineTooLongError("it sent compressed bytes")
    taken = 0
    for data in response.iter_bytes():
        taken += len(data)
        if taken > MAX_ANSWER_BYTES:
            raise LineTooLongError("it sent an answer that did not end")
        yield data


def _is_compressed(response: httpx.Response) -> bool:
    """Whether the content is compressed, though that was not accepted: a few bytes may expand to millions."""
    return response.headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}


def _bounded_text(response: httpx.Response) -> str:
    if _is_compressed(response):
        return "(compressed bytes)"
    body = b""
    for data in response.iter_bytes():
        body += data
        if len(body) >= MAX_ERROR_BYTES:
            break
    return body[:MAX_ERROR_BYTES].decode("utf-8", "replace")
