"""Reads an answer of OpenAI's chat API as it arrives: events of a stream, or one object."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
from msgspec import Struct

from clean_room_agent.errors import ModelError
from clean_room_agent.llm.answers import TokenChoice
from clean_room_agent.llm.transport import ChatRequest
from clean_room_agent.llm.transports import server_errors
from clean_room_agent.llm.transports.http import Count, StreamedAnswer, read_piece, whole_characters
from clean_room_agent.llm.transports.server_errors import RequestTarget

END = b"[DONE]"
FIELDS = frozenset({b"data", b"error", b"event", b"id", b"retry", b""})
"""Of server-sent events, and what older llama-server adds; a comment has no name."""
MAX_HELD = 100
"""Lines of one event's data."""


class _Likely(Struct, frozen=True, kw_only=True):
    token: str
    logprob: float | None = None


class _Token(_Likely, frozen=True, kw_only=True):
    top_logprobs: list[_Likely] | None = None


class _Probabilities(Struct, frozen=True, kw_only=True):
    content: list[_Token] | None = None
    tokens: list[str] | None = None
    """Of a completion, with the next field, in place of `content`."""
    token_logprobs: list[float | None] | None = None

    def choices(self) -> Iterator[TokenChoice]:
        """The tokens in either form."""
        yield from map(_as_choice, self.content or ())
        for token, logprob in zip(self.tokens or (), self.token_logprobs or (), strict=False):
            yield TokenChoice(token=token, top=() if logprob is None else ((token, logprob),))


class _Part(Struct, frozen=True, kw_only=True):
    """A part of a content in parts: text, or thinking, which has parts itself."""

    text: str = ""
    thinking: "list[_Part] | str" = ""

    def thought(self) -> str:
        """What it holds of thinking."""
        return (
            self.thinking if isinstance(self.thinking, str) else "".join(part.text for part in self.thinking)
        )


class _Message(Struct, frozen=True, kw_only=True):
    content: str | list[_Part] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[Any] | None = None

    def texts(self) -> tuple[str, str]:
        """What it holds of the answer, and of thinking."""
        thought = self.reasoning_content or self.reasoning or ""
        if isinstance(self.content, list):
            parts = self.content
            return "".join(part.text for part in parts), thought + "".join(part.thought() for part in parts)
        return self.content or "", thought


class _Choice(Struct, frozen=True, kw_only=True):
    index: int | None = 0
    delta: _Message | None = None
    message: _Message | None = None
    text: str | None = None
    """Of a completion, in place of a message."""
    finish_reason: str | None = None
    logprobs: _Probabilities | None = None


class _OfPrompt(Struct, frozen=True, kw_only=True):
    cached_tokens: Count | None = None


class _Usage(Struct, frozen=True, kw_only=True):
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    prompt_tokens_details: _OfPrompt | None = None


class _Timings(Struct, frozen=True, kw_only=True):
    """What llama-server reports about the work in addition to the usage."""

    cache_n: Count | None = None


class _Chunk(Struct, frozen=True, kw_only=True):
    """A piece of a stream, or a complete answer; servers report errors under one of two names."""

    object: str = ""
    choices: tuple[_Choice, ...] | None = None
    usage: _Usage | None = None
    timings: _Timings | None = None
    error: Any = None
    message: Any = None
    """This and the next are the error in a piece that has nothing else."""
    detail: Any = None
    content: str | None = None
    """With the fields below: a piece of what llama-server fills in."""
    stop: bool = False
    stop_type: str = ""
    truncated: bool = False
    tokens_evaluated: Count | None = None
    tokens_predicted: Count | None = None
    completion_probabilities: list[_Token] | None = None


class OpenAiAnswer(StreamedAnswer):
    """An answer in progress."""

    missing = frozenset({httpx.codes.NOT_FOUND, httpx.codes.BAD_REQUEST})

    def __init__(
        self,
        target: RequestTarget,
        known: Callable[[], tuple[str, ...]],
        request: ChatRequest,
        *,
        streaming: bool = True,
    ) -> None:
        """Without streaming, the lines are those of one object."""
        super().__init__(target, known, request)
        self._streaming = streaming
        self._lines: list[bytes] = []
        """Of one object that is not complete."""
        self._event = b""
        self._chunks = 0

    @property
    def complete(self) -> bool:
        """Whether the finish reason has arrived; only counts may follow."""
        return self.done or bool(self.reason)

    def take(self, line: bytes) -> ModelError | None:
        """Add one line; return the error that it reports. A server may answer with one object though a stream was asked for."""
        if self._streaming and not self._chunks and not self._lines and line.lstrip().startswith(b"{"):
            self._streaming = False
        if not self._streaming:
            self._lines.append(line)
            return None
        name, colon, value = line.strip().partition(b":")
        if name not in FIELDS or not (colon or name == b"data"):
            return None if self._chunks else self._protocol_error(line)
        if name == b"event":
            self._event = value.strip()
        if name == b"error" or (name == b"data" and self._event == b"error" and value.strip()):
            return self.refused(httpx.codes.OK, value.decode("utf-8", "replace"))
        return self._take_data(value.strip()) if name == b"data" and value.strip() else None

    def _take_data(self, value: bytes) -> ModelError | None:
        """Add a line of data; an object may stand on several."""
        if value.upper() == END:
            self._ended = True
            return self.end()
        self._lines.append(value)
        held = b"\n".join(self._lines)
        try:
            chunk = read_piece(held, _Chunk)
        except ValueError:
            if held.startswith(b"{") and len(self._lines) < MAX_HELD and not _is_json(held):
                return None
            return self._protocol_error(held)
        self._lines.clear()
        self._event = b""
        return self._add_chunk(chunk, held)

    def end(self) -> ModelError | None:
        """The error for an answer that ended without a reason, or before anything came."""
        held = b"\n".join(self._lines)
        if held and self._streaming:
            return self._protocol_error(held)
        if held:
            try:
                return self._add_chunk(read_piece(held, _Chunk), held)
            except ValueError:
                return self._protocol_error(held)
        if self.complete and self._chunks:
            return None
        said = "its end marker came alone" if self.complete else "the stream ended before its end marker"
        return server_errors.broken_off(self._target, said, begun=self.begun)

    def _add_chunk(self, chunk: _Chunk, text: bytes) -> ModelError | None:
        self._chunks += 1
        alone = not chunk.choices and (chunk.message is not None or chunk.detail is not None)
        if chunk.error is not None or chunk.object == "error" or alone:
            return self.refused(httpx.codes.OK, text.decode("utf-8", "replace"))
        if chunk.usage is not None:
            self.prompt_tokens, self.completion_tokens = (
                chunk.usage.prompt_tokens,
                chunk.usage.completion_tokens,
            )
            if chunk.usage.prompt_tokens_details is not None:
                self.cached_tokens = chunk.usage.prompt_tokens_details.cached_tokens
        if chunk.timings is not None and self.cached_tokens is None:
            self.cached_tokens = chunk.timings.cache_n
        for choice in [one for one in chunk.choices or () if not one.index][:1]:
            message = choice.delta or choice.message or _Message()
            said, thought = message.texts()
            self._add_pieces(said or choice.text, thought, message.tool_calls)
            if choice.logprobs is not None and not (thought and not said):
                self._tokens.extend(choice.logprobs.choices())
            self.reason = choice.finish_reason or self.reason
        self._add_filled(chunk)
        return self._early_end_error() if self.reason else None

    def _add_filled(self, chunk: _Chunk) -> None:
        """Add a piece in llama-server's own form; its last one, and an answer in one piece, holds the figures."""
        self._add_pieces(chunk.content)
        self._tokens.extend(map(_own_choice, chunk.completion_probabilities or ()))
        if chunk.stop:
            self._ended = True
            self.reason = "length" if chunk.stop_type == "limit" else "stop"
            self.prompt_tokens, self.completion_tokens = chunk.tokens_evaluated, chunk.tokens_predicted


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _as_choice(token: _Token) -> TokenChoice:
    return TokenChoice(
        token=whole_characters(token.token),
        top=tuple(
            (whole_characters(likely.token), likely.logprob)
            for likely in token.top_logprobs or ()
            if likely.logprob is not None
        ),
    )


def _own_choice(token: _Token) -> TokenChoice:
    """The token with its own probability alone: a warm draw may take one that is not among the likeliest."""
    return TokenChoice(
        token=token.token, top=() if token.logprob is None else ((token.token, token.logprob),)
    )
