"""Ollama's native API. The only module that knows HTTP; import it where a server is about to be asked."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, Field, ValidationError

from clean_room_agent.errors import ModelError
from clean_room_agent.llm.answers import TokenChoice
from clean_room_agent.llm.config import ModelsConfig, is_loopback
from clean_room_agent.llm.exchange import (
    ChatRequest,
    Finish,
    LoadedModel,
    ModelDetails,
    RawAnswer,
    Refusal,
    ServedModel,
)
from clean_room_agent.llm.transports import failures
from clean_room_agent.llm.transports.failures import Target
from clean_room_agent.llm.transports.ndjson import LineSplitter, LineTooLongError

LIKELY_TOKENS = 20
INFO_SECONDS = 5.0
MAX_ERROR_BYTES = 65_536
STREAM_HEADERS = {"content-type": "application/json", "accept-encoding": "identity", "connection": "close"}

ReplyT = TypeVar("ReplyT", bound=BaseModel)


class _Likely(BaseModel):
    token: str
    logprob: float


class _Token(_Likely):
    top_logprobs: list[_Likely] = Field(default_factory=list)


class _Message(BaseModel):
    content: str | None = None
    thinking: str | None = None


class _ChatLine(BaseModel):
    message: _Message | None = None
    done: bool = False
    done_reason: str | None = None
    prompt_eval_count: int | None = None
    eval_count: int | None = None
    logprobs: list[_Token] | None = None
    error: Any = None


class _Version(BaseModel):
    version: str


class _Served(BaseModel):
    name: str
    digest: str = ""
    size: int = 0
    context_length: int | None = None


class _Models(BaseModel):
    models: list[_Served] = Field(default_factory=list)


class _Show(BaseModel):
    model_info: dict[str, Any] = Field(default_factory=dict)
    capabilities: list[str] = Field(default_factory=list)


class _Collected:
    """An answer under way."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.thinking: list[str] = []
        self.tokens: list[TokenChoice] = []
        self.done = False
        self.done_reason = ""
        self.prompt_tokens: int | None = None
        self.completion_tokens: int | None = None
        self.refusal: Refusal | None = None

    @property
    def begun(self) -> bool:
        """Whether a token has come."""
        return bool(self.text or self.thinking)

    def take(self, line: _ChatLine) -> None:
        """Adds one line of the stream."""
        if line.message is not None and line.message.content:
            self.text.append(line.message.content)
        if line.message is not None and line.message.thinking:
            self.thinking.append(line.message.thinking)
        if line.message is not None and not line.message.thinking:
            self.tokens.extend(_as_choice(token) for token in line.logprobs or ())
        if line.done:
            self.done = True
            self.done_reason = line.done_reason or "stop"
            self.prompt_tokens = line.prompt_eval_count
            self.completion_tokens = line.eval_count if line.eval_count is not None or self.begun else 0

    def as_answer(self, body: str, error: ModelError | None) -> RawAnswer:
        """All that came, with what went wrong."""
        finish: Finish = "length" if self.done_reason == "length" else "stop"
        return RawAnswer(
            request_body=body,
            text="".join(self.text),
            thinking="".join(self.thinking),
            finish=finish,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            tokens=tuple(self.tokens),
            error=error,
            refusal=self.refusal,
        )


class OllamaTransport:
    """Sends requests to an Ollama server, and asks it about its models."""

    provider = "ollama"
    live = True

    def __init__(
        self, config: ModelsConfig, http: httpx.Client, *, timer: Callable[[], float] = time.monotonic
    ) -> None:
        self._server = config.base_url
        self._timeouts = config.timeouts
        self._keep_alive = config.keep_alive
        self._http = http
        self._timer = timer
        self._digests: dict[str, str] = {}

    def send(self, request: ChatRequest) -> RawAnswer:
        """The outcome of one request; what went wrong is its `error`."""
        body = encode(request, keep_alive=self._keep_alive)
        collected = _Collected()
        target = Target(server=self._server, tag=request.model.tag)
        error = self._receive(body, collected, target)
        answer = collected.as_answer(body, error)
        return answer if error is not None else replace(answer, model_digest=self._digest(target.tag))

    def version(self) -> str:
        """The server's version.

        Raises:
            ModelError: the server cannot be asked.
        """
        return self._ask("GET", "/api/version", _Version).version

    def list_models(self) -> tuple[ServedModel, ...]:
        """What the server has, by tag.

        Raises:
            ModelError: the server cannot be asked.
        """
        served = self._ask("GET", "/api/tags", _Models).models
        models = [ServedModel(tag=model.name, digest=model.digest, size_bytes=model.size) for model in served]
        return tuple(sorted(models, key=lambda model: model.tag))

    def show(self, tag: str) -> ModelDetails:
        """One model: the window it was trained for, and what it can do.

        Raises:
            ModelNotFound: the server does not have it.
            ModelError: the server cannot be asked.
        """
        shown = self._ask("POST", "/api/show", _Show, tag=tag)
        lengths = [
            value for key, value in sorted(shown.model_info.items()) if key.endswith(".context_length")
        ]
        length = next((value for value in lengths if isinstance(value, int)), None)
        return ModelDetails(tag=tag, context_length=length, capabilities=tuple(sorted(shown.capabilities)))

    def loaded(self) -> tuple[LoadedModel, ...]:
        """What the server holds in memory, with the window it was loaded with, by tag.

        Raises:
            ModelError: the server cannot be asked.
        """
        running = self._ask("GET", "/api/ps", _Models).models
        models = [LoadedModel(tag=model.name, context_length=model.context_length) for model in running]
        return tuple(sorted(models, key=lambda model: model.tag))

    def _receive(self, body: str, collected: _Collected, target: Target) -> ModelError | None:
        """Fills `collected`; the error that ended it."""
        limits = self._timeouts
        first = min(limits.first_byte, limits.total)
        # httpcore looks the read limit up when it begins to read the body, so it can be changed after the headers.
        waits = {"connect": limits.connect, "write": first, "read": first, "pool": None}
        answered = False
        deadline = self._timer() + limits.total
        try:
            with self._http.stream(
                "POST", "/api/chat", content=body, headers=STREAM_HEADERS, extensions={"timeout": waits}
            ) as response:
                answered = True
                waits["read"] = min(limits.idle, limits.total)
                if response.status_code != httpx.codes.OK:
                    return self._reported(target, response.status_code, _bounded_text(response), collected)
                return self._read_stream(response, collected, target, deadline)
        except (httpx.ConnectError, httpx.ConnectTimeout) as exc:
            return failures.refused_connection(target, str(exc) or type(exc).__name__)
        except httpx.TimeoutException:
            key, limit = ("idle", limits.idle) if answered else ("first_byte", limits.first_byte)
            return failures.late(target, key if limit <= limits.total else "total", min(limit, limits.total))
        except httpx.HTTPError as exc:
            return failures.broken_off(target, str(exc) or type(exc).__name__, begun=collected.begun)

    def _read_stream(
        self, response: httpx.Response, collected: _Collected, target: Target, deadline: float
    ) -> ModelError | None:
        lines = LineSplitter()
        try:
            for data in response.iter_bytes():
                for line in lines.feed(data):
                    error = self._take(line, collected, target)
                    if error is not None or collected.done:
                        return error
                if self._timer() > deadline:
                    return failures.late(target, "total", self._timeouts.total)
        except LineTooLongError as exc:
            return failures.not_the_protocol(target, str(exc))
        for line in lines.end():
            error = self._take(line, collected, target)
            if error is not None or collected.done:
                return error
        if not collected.begun:
            return failures.broken_off(target, "the stream ended empty", begun=False)
        return failures.endless(target, "".join(collected.text) or "".join(collected.thinking))

    def _take(self, line: bytes, collected: _Collected, target: Target) -> ModelError | None:
        try:
            parsed = _ChatLine.model_validate_json(line)
        except ValidationError:
            return failures.not_the_protocol(target, f"it sent {line[:200].decode('utf-8', 'replace')!r}")
        if parsed.error is not None:
            return self._reported(target, httpx.codes.OK, json.dumps({"error": parsed.error}), collected)
        collected.take(parsed)
        if collected.done and collected.done_reason not in {"stop", "length"}:
            return failures.ended_early(target, collected.done_reason)
        return None

    def _reported(self, target: Target, status: int, body: str, collected: _Collected) -> ModelError:
        known = self._known_tags() if status == httpx.codes.NOT_FOUND else ()
        error, collected.refusal = failures.reported(target, status, body, known=known)
        return error

    def _digest(self, tag: str) -> str:
        """The digest of the model at its first answer; "" where the server does not tell."""
        if tag not in self._digests:
            try:
                found = {model.tag: model.digest for model in self.list_models()}
            except ModelError:
                found = {}
            self._digests[tag] = found.get(tag) or found.get(f"{tag}:latest", "")
        return self._digests[tag]

    def _known_tags(self) -> tuple[str, ...]:
        try:
            return tuple(model.tag for model in self.list_models())
        except ModelError:
            return ()

    def _ask(self, method: str, path: str, kind: type[ReplyT], *, tag: str = "") -> ReplyT:
        target = Target(server=self._server, tag=tag)
        payload = {"model": tag} if tag else None
        try:
            response = self._http.request(method, path, json=payload, timeout=INFO_SECONDS)
        except httpx.TransportError as exc:
            raise failures.refused_connection(target, str(exc) or type(exc).__name__) from exc
        if response.status_code != httpx.codes.OK:
            known = self._known_tags() if tag and response.status_code == httpx.codes.NOT_FOUND else ()
            raise failures.reported(target, response.status_code, response.text, known=known)[0]
        try:
            return kind.model_validate_json(response.content)
        except ValidationError as exc:
            raise failures.not_the_protocol(target, f"{path} answered {response.text[:200]!r}") from exc


def connect(config: ModelsConfig) -> OllamaTransport:
    """A transport to `[models].base_url`; nothing is sent yet.

    Without kept connections: a server may close one after a stream without saying so, and the next call on it fails.
    Proxy settings of the environment are ignored for this machine, or local prompts would leave it.
    """
    http = httpx.Client(
        base_url=config.base_url,
        trust_env=not is_loopback(config.base_url),
        verify=config.base_url.startswith("https:"),
        limits=httpx.Limits(max_keepalive_connections=0),
    )
    return OllamaTransport(config, http)


def encode(request: ChatRequest, *, keep_alive: str) -> str:
    """The body of a chat request. Of the options, only those of the answer differ between prompts: another `num_ctx`
    would make the server load the model again.
    """
    messages = [{"role": "user", "content": request.prompt}]
    if request.system:
        messages.insert(0, {"role": "system", "content": request.system})
    sampling = request.sampling
    body: dict[str, Any] = {"model": request.model.tag, "messages": messages, "stream": True}
    if request.schema is not None:
        body["format"] = request.schema
    body |= {"keep_alive": keep_alive, "think": False, "truncate": False, "shift": False}
    if request.wants_logprobs:
        body |= {"logprobs": True, "top_logprobs": LIKELY_TOKENS}
    body["options"] = {
        "num_ctx": request.model.window,
        "num_predict": request.max_tokens,
        "temperature": sampling.temperature,
        "seed": sampling.seed,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "repeat_penalty": 1.0,
        "stop": [],
    }
    return json.dumps(body, separators=(",", ":"))


def _as_choice(token: _Token) -> TokenChoice:
    return TokenChoice(
        token=token.token, top=tuple((likely.token, likely.logprob) for likely in token.top_logprobs)
    )


def _bounded_text(response: httpx.Response) -> str:
    body = b""
    for data in response.iter_bytes():
        body += data
        if len(body) >= MAX_ERROR_BYTES:
            break
    return body[:MAX_ERROR_BYTES].decode("utf-8", "replace")
