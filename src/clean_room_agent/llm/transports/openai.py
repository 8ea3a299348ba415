"""Servers that speak OpenAI's chat API: vLLM, llama-server, LM Studio, llama-cpp-python's server."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
from pydantic import BaseModel, Field, ValidationError

from clean_room_agent.errors import ModelError
from clean_room_agent.llm.answers import JsonSchema, TokenChoice
from clean_room_agent.llm.config import ModelsConfig
from clean_room_agent.llm.exchange import (
    ChatRequest,
    Finish,
    ModelDetails,
    RawAnswer,
    Refusal,
    ServedModel,
)
from clean_room_agent.llm.transports import failures
from clean_room_agent.llm.transports.failures import OPENAI, Target
from clean_room_agent.llm.transports.http import ReplyT, ServerDoor, open_client

LIKELY_TOKENS = 20
END = b"[DONE]"
ENDINGS = ("stop", "length")
COUNTED = ("model", "messages", "chat_template_kwargs")
"""The fields of a request that make its prompt."""


class _Likely(BaseModel):
    token: str
    logprob: float | None = None


class _Token(_Likely):
    top_logprobs: list[_Likely] | None = None


class _Probabilities(BaseModel):
    content: list[_Token] | None = None


class _Message(BaseModel):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None


class _Choice(BaseModel):
    delta: _Message | None = None
    message: _Message | None = None
    finish_reason: str | None = None
    logprobs: _Probabilities | None = None


class _Usage(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Chunk(BaseModel):
    """A piece of a stream, or a whole answer; servers put errors under one of two names."""

    object: str = ""
    choices: list[_Choice] = Field(default_factory=list)
    usage: _Usage | None = None
    error: Any = None


class _Meta(BaseModel):
    n_ctx: int | None = None
    n_ctx_train: int | None = None


class _Served(BaseModel):
    id: str
    owned_by: str = ""
    max_model_len: int | None = None
    meta: _Meta | None = None
    max_context_length: int | None = None
    loaded_context_length: int | None = None


class _Models(BaseModel):
    data: list[_Served]


class _Settings(BaseModel):
    n_ctx: int | None = None


class _Props(BaseModel):
    default_generation_settings: _Settings = Field(default_factory=_Settings)
    build_info: str = ""


class _Version(BaseModel):
    version: str


class _Count(BaseModel):
    count: int


class _Collected:
    """An answer under way."""

    def __init__(
        self, target: Target, known: Callable[[], tuple[str, ...]], *, streaming: bool = True
    ) -> None:
        """`known` tells the models that the server has. Without streaming, the lines are those of one object."""
        self._target = target
        self._known = known
        self._streaming = streaming
        self._lines: list[bytes] = []
        self.text: list[str] = []
        self.thinking: list[str] = []
        self.tokens: list[TokenChoice] = []
        self.reason = ""
        self.done = False
        self.usage = _Usage()
        self.refusal: Refusal | None = None

    @property
    def begun(self) -> bool:
        """Whether a token has come."""
        return bool(self.text or self.thinking)

    @property
    def complete(self) -> bool:
        """Whether the reason of the end has come; what may follow are counts."""
        return self.done or bool(self.reason)

    def take(self, line: bytes) -> ModelError | None:
        """Adds one line; the error that it reports."""
        if not self._streaming:
            self._lines.append(line)
            return None
        name, colon, value = line.strip().partition(b":")
        if not colon or name not in {b"data", b"error", b"event", b"id", b"retry", b""}:
            return self._foreign(line)
        if name == b"error":  # older llama-server: an event's field of its own
            return self.refused(httpx.codes.OK, value.decode("utf-8", "replace"))
        if name != b"data":
            return None
        if value.strip() == END:
            self.done = True
            return None
        return self._add(value)

    def refused(self, status: int, body: str) -> ModelError:
        """The error that the server reports in place of an answer, or within one (status 200)."""
        known = self._known() if status in {httpx.codes.NOT_FOUND, httpx.codes.BAD_REQUEST} else ()
        error, self.refusal = failures.reported(self._target, status, body, known=known)
        return error

    def end(self) -> ModelError | None:
        """The error for an answer that ended without a reason."""
        if self._lines:
            return self._add(b"\n".join(self._lines))
        if self.complete:
            return None
        return failures.broken_off(self._target, "the stream ended without its end", begun=self.begun)

    def as_answer(self, body: str, error: ModelError | None) -> RawAnswer:
        """All that came, with what went wrong."""
        finish: Finish = "length" if self.reason == "length" else "stop"
        return RawAnswer(
            request_body=body,
            text="".join(self.text),
            thinking="".join(self.thinking),
            finish=finish,
            prompt_tokens=self.usage.prompt_tokens,
            completion_tokens=self.usage.completion_tokens,
            tokens=tuple(self.tokens),
            error=error,
            refusal=self.refusal,
        )

    def _add(self, text: bytes) -> ModelError | None:
        try:
            chunk = _Chunk.model_validate_json(text)
        except ValidationError:
            return self._foreign(text)
        if chunk.error is not None or chunk.object == "error":
            return self.refused(httpx.codes.OK, text.decode("utf-8", "replace"))
        self.usage = chunk.usage or self.usage
        for choice in chunk.choices[:1]:
            message = choice.delta or choice.message or _Message()
            thought = message.reasoning_content or message.reasoning
            if message.content:
                self.text.append(message.content)
            if thought:
                self.thinking.append(thought)
            if choice.logprobs is not None and not (thought and not message.content):
                self.tokens.extend(_as_choice(token) for token in choice.logprobs.content or ())
            self.reason = choice.finish_reason or self.reason
        if self.reason and self.reason not in ENDINGS:
            return failures.ended_early(self._target, self.reason)
        return None

    def _foreign(self, text: bytes) -> ModelError:
        return failures.not_the_protocol(self._target, f"it sent {text[:200].decode('utf-8', 'replace')!r}")


class OpenAiTransport:
    """Sends requests to a server of OpenAI's chat API, and asks it about its models."""

    provider = "openai"
    live = True

    def __init__(
        self,
        config: ModelsConfig,
        http: httpx.Client,
        *,
        key: str = "",
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        """`key` is the one that `http` sends: it is taken out of what the server reports."""
        self._config = config
        self._door = ServerDoor(http, config.timeouts, secret=key, timer=timer)

    def send(self, request: ChatRequest) -> RawAnswer:
        """The outcome of one request; what went wrong is its `error`."""
        fields = encode(request, self._config)
        body = json.dumps(fields, separators=(",", ":"))
        target = self._target(request.model.tag)
        collected = _Collected(target, self._known_tags, streaming=self._config.streaming)
        error = self._door.stream("/v1/chat/completions", body, collected, target)
        refusal = collected.refusal
        if refusal is not None and refusal.window is not None and refusal.prompt_tokens is None:
            collected.refusal = replace(refusal, prompt_tokens=self._count(fields, target))
        return collected.as_answer(body, error)

    def window(self, tag: str) -> int | None:
        """The window that the server gives the model, in tokens; None where it does not tell.

        Raises:
            ModelError: the server does not have the model, or cannot be asked.
        """
        return self.show(tag).served

    def version(self) -> str:
        """What the server is, as far as it tells.

        Raises:
            ModelError: it has no list of models.
        """
        owners = {model.owned_by for model in self._models()}
        if "vllm" in owners:
            found = self._maybe("/version", _Version)
            return f"vLLM {found.version}" if found else "vLLM"
        if "llamacpp" in owners:
            props = self._maybe("/props", _Props)
            return f"llama-server {props.build_info}".strip() if props else "llama-server"
        return "llama-cpp-python" if owners == {"me"} else "an OpenAI-compatible server"

    def list_models(self) -> tuple[ServedModel, ...]:
        """What the server has, by tag; it tells neither digests nor sizes.

        Raises:
            ModelError: the server cannot be asked.
        """
        tags = sorted({model.id for model in self._models()})
        return tuple(ServedModel(tag=tag, digest="", size_bytes=0) for tag in tags)

    def show(self, tag: str) -> ModelDetails:
        """One model: the window that the server gives it, and the one that it was trained for, where it tells.

        Raises:
            ModelNotFound: the server does not list it. (Some would answer all the same, with another model.)
            ModelError: the server cannot be asked.
        """
        models = {model.id: model for model in self._models()}
        if tag not in models:
            raise failures.no_model(self._target(tag), tuple(sorted(models)))
        model = models[tag]
        meta = model.meta or _Meta()
        # vLLM tells the window with the model, but not with its adapters.
        lengths = (each.max_model_len for each in (model, *models.values()))
        served = meta.n_ctx or next((length for length in lengths if length), None)
        trained = meta.n_ctx_train
        if served is None:
            studio = {each.id: each for each in self._studio()}.get(tag)
            if studio is not None:
                served, trained = studio.loaded_context_length, studio.max_context_length
        if served is None:
            props = self._maybe("/props", _Props)
            served = props.default_generation_settings.n_ctx if props else None
        return ModelDetails(tag=tag, context_length=trained, capabilities=(), served=served or None)

    def _models(self) -> list[_Served]:
        return self._door.ask("GET", "/v1/models", _Models, self._target("")).data

    def _studio(self) -> list[_Served]:
        """The models as LM Studio's own interface tells them; none from another server."""
        found = self._maybe("/api/v0/models", _Models)
        return found.data if found else []

    def _maybe(self, path: str, kind: type[ReplyT]) -> ReplyT | None:
        """The answer of a path that only some servers have."""
        try:
            return self._door.ask("GET", path, kind, self._target(""))
        except ModelError:
            return None

    def _count(self, body: dict[str, Any], target: Target) -> int | None:
        """The tokens of a request's prompt as vLLM counts them; None from another server."""
        wanted: dict[str, Any] = {name: body[name] for name in COUNTED if name in body}
        try:
            return self._door.ask("POST", "/tokenize", _Count, target, payload=wanted).count
        except ModelError:
            return None

    def _known_tags(self) -> tuple[str, ...]:
        try:
            return tuple(model.tag for model in self.list_models())
        except ModelError:
            return ()

    def _target(self, tag: str) -> Target:
        return Target(server=self._config.base_url, tag=tag, dialect=OPENAI)


def connect(config: ModelsConfig, *, key: str = "") -> OpenAiTransport:
    """A transport to `[models].base_url`, with or without its `/v1`; nothing is sent yet."""
    http = open_client(config, config.base_url.removesuffix("/v1"), key=key)
    return OpenAiTransport(config, http, key=key)


def encode(request: ChatRequest, config: ModelsConfig) -> dict[str, Any]:
    """The body of a chat request.

    A repetition penalty punishes copying, which is what a search block is; servers take it under either name, and from
    the model's own files where it is left out. Thinking is switched off in the way that chat templates know.
    """
    messages = [{"role": "user", "content": request.prompt}]
    if request.system:
        messages.insert(0, {"role": "system", "content": request.system})
    sampling = request.sampling
    body: dict[str, Any] = {"model": request.model.tag, "messages": messages, "stream": config.streaming}
    if config.streaming:
        body["stream_options"] = {"include_usage": True}
    body |= {
        "max_tokens": request.max_tokens,
        "temperature": sampling.temperature,
        "seed": sampling.seed,
        "top_p": sampling.top_p,
        "repeat_penalty": 1.0,
        "repetition_penalty": 1.0,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    if sampling.top_k:
        body["top_k"] = sampling.top_k
    if request.schema is not None:
        body |= _shape(request.identity.prompt, request.schema, config)
    if request.wants_logprobs and config.logprobs:
        body |= {"logprobs": True, "top_logprobs": LIKELY_TOKENS}
    return body | config.extra_body


def _shape(name: str, schema: JsonSchema, config: ModelsConfig) -> dict[str, Any]:
    """How the server is told the answer's schema."""
    match config.schema_dialect:
        case "json_schema":
            described = {"name": name, "strict": True, "schema": schema}
            return {"response_format": {"type": "json_schema", "json_schema": described}}
        case "json_object":
            return {"response_format": {"type": "json_object", "schema": schema}}
        case "structured_outputs":
            return {"structured_outputs": {"json": schema}}


def _as_choice(token: _Token) -> TokenChoice:
    return TokenChoice(
        token=token.token,
        top=tuple(
            (likely.token, likely.logprob)
            for likely in token.top_logprobs or ()
            if likely.logprob is not None
        ),
    )
