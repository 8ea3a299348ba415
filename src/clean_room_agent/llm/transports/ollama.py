"""Transport to Ollama's native API."""

import json
import re
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx
from msgspec import Struct, field
from msgspec.structs import replace

from clean_room_agent.errors import ModelError
from clean_room_agent.llm.answers import TokenChoice
from clean_room_agent.llm.model_config import ModelsConfig
from clean_room_agent.llm.router import ModelConfig
from clean_room_agent.llm.transport import (
    ChatRequest,
    ModelDetails,
    ModelLoad,
    ModelServer,
    RawAnswer,
    ServedModel,
    tags_of,
)
from clean_room_agent.llm.transports import server_errors
from clean_room_agent.llm.transports.connections import (
    Deadline,
    ForwardGuard,
    Forwarding,
    LoadRequest,
    open_client,
)
from clean_room_agent.llm.transports.http import (
    Count,
    HttpServer,
    ReplyT,
    ServerVersion,
    StreamedAnswer,
    read_piece,
)
from clean_room_agent.llm.transports.server_errors import OLLAMA, RequestTarget

LIKELY_TOKENS = 20
KEPT_FOR_NOTHING = re.compile(r"(?:0+(?:\.0*)?(?:[a-z]+|$))+")
"""A `keep_alive` that unloads a model after each request: one without a prompt would unload it, too."""
LOADED_AS = {"shift": False}
"""What a model is loaded with, apart from the options."""


class _OllamaLikely(Struct, frozen=True, kw_only=True):
    token: str
    logprob: float


class _OllamaToken(_OllamaLikely, frozen=True, kw_only=True):
    top_logprobs: tuple[_OllamaLikely, ...] = ()


class _OllamaMessage(Struct, frozen=True, kw_only=True):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[Any] | None = None


class _ChatLine(Forwarding, frozen=True, kw_only=True):
    message: _OllamaMessage | None = None
    response: str | None = None
    """What is filled in, in place of a message."""
    done: bool = False
    done_reason: str | None = None
    prompt_eval_count: Count | None = None
    eval_count: Count | None = None
    logprobs: list[_OllamaToken] | None = None
    error: Any = None


class _OllamaModel(Forwarding, frozen=True, kw_only=True):
    name: str
    digest: str = ""
    size: Count = 0


class _OllamaModels(Struct, frozen=True, kw_only=True):
    models: tuple[_OllamaModel, ...] = ()


class _Show(Forwarding, frozen=True, kw_only=True):
    model_info: dict[str, Any] = field(default_factory=dict)
    capabilities: tuple[str, ...] = ()


class OllamaAnswer(StreamedAnswer):
    """An answer in progress."""

    def __init__(
        self,
        target: RequestTarget,
        known: Callable[[], tuple[str, ...]],
        request: ChatRequest,
        forwards: ForwardGuard,
    ) -> None:
        super().__init__(target, known, request)
        self._forwards = forwards

    @property
    def complete(self) -> bool:
        """Whether the last line has arrived, which has the finish reason."""
        return self._ended

    def take(self, line: bytes) -> ModelError | None:
        """Add one line of the stream; return the error that it reports."""
        try:
            parsed = read_piece(line, _ChatLine)
        except ValueError:
            return self._protocol_error(line)
        if parsed.error is not None:
            return self.refused(httpx.codes.OK, json.dumps({"error": parsed.error}))
        elsewhere = self._forwards.seen(self._target, parsed)
        if elsewhere is not None:
            return elsewhere
        self._add_line(parsed)
        return self._early_end_error() if self._ended else None

    def end(self) -> ModelError | None:
        """The error for a stream that ended without its last line."""
        if self.done:
            return None
        if not self.begun:
            return server_errors.broken_off(self._target, "the stream ended empty", begun=False)
        return server_errors.endless(self._target, self.text or self.thinking)

    def _add_line(self, line: _ChatLine) -> None:
        said = line.message or _OllamaMessage()
        self._add_pieces(said.content or line.response, said.thinking, said.tool_calls)
        if not said.thinking:
            self._tokens.extend(_as_choice(token) for token in line.logprobs or ())
        if line.done:
            self._ended = True
            self.reason = line.done_reason or "stop"
            self.prompt_tokens = line.prompt_eval_count
            self.completion_tokens = line.eval_count if line.eval_count is not None or self.begun else 0


class OllamaTransport(ModelServer):
    """Sends requests to an Ollama server, and asks it about its models.

    A request gets the window that it asks for. The server cannot count without answering, and does not report its slots
    (OLLAMA_NUM_PARALLEL).
    """

    provider = "ollama"
    live = True

    def __init__(
        self, config: ModelsConfig, http: httpx.Client, *, timer: Callable[[], float] = time.monotonic
    ) -> None:
        self._server = config.base_url
        self._keep_alive = config.keep_alive
        self._load_seconds = config.timeouts.first_byte
        self._http = HttpServer(http, config.timeouts, timer=timer)
        self._digests: dict[str, str] = {}
        self._forwards = ForwardGuard(lambda tag: self.show(tag).forwards_to, allowed=config.allow_remote)

    def send(self, request: ChatRequest) -> RawAnswer:
        """The outcome of one request; what went wrong is its `error`."""
        body = encode(request, keep_alive=self._keep_alive)
        target = self._request_target(request.model.tag)
        refused = self._forwards.refusal(target)
        if refused is not None:
            return RawAnswer(request_body=body, error=refused)
        collected = OllamaAnswer(target, lambda: tags_of(self), request, self._forwards)
        path = "/api/chat" if request.gap is None else "/api/generate"
        error = self._http.stream(path, body, collected, target)
        answer = collected.as_answer(body, error)
        return answer if error is not None else replace(answer, model_digest=self._model_digest(target.tag))

    def digest(self, tag: str) -> str | None:
        """The digest that the server lists; None if it lists none, or cannot be asked."""
        found = self._digests.get(tag) or self._listed_digest(tag)
        if found:
            self._digests[tag] = found
        return found or None

    def version(self) -> str:
        """The server's version.

        Raises:
            ModelError: the server cannot be asked.
        """
        return f"version {self._ask_api('GET', '/api/version', ServerVersion).version}"

    def list_models(self) -> tuple[ServedModel, ...]:
        """The models of the server, by tag.

        Raises:
            ModelError: the server cannot be asked.
        """
        served = self._ask_api("GET", "/api/tags", _OllamaModels).models
        models = [
            ServedModel(
                tag=model.name,
                digest=model.digest,
                size_bytes=model.size,
                forwards_to=model.destination(model.name),
            )
            for model in served
        ]
        return tuple(sorted(models, key=lambda model: model.tag))

    def show(self, tag: str) -> ModelDetails:
        """One model: the window it was trained for, and what it can do.

        Raises:
            ModelNotFound: the server does not have it.
            ModelError: the server cannot be asked.
        """
        shown = self._ask_api("POST", "/api/show", _Show, tag=tag)
        lengths = [
            value for key, value in sorted(shown.model_info.items()) if key.endswith(".context_length")
        ]
        length = next((value for value in lengths if isinstance(value, int)), None)
        return ModelDetails(
            tag=tag,
            context_length=length,
            capabilities=tuple(sorted(shown.capabilities)),
            forwards_to=shown.destination(tag),
        )

    def loading(self, model: ModelConfig) -> ModelLoad | None:
        """A request without a prompt, which loads the model; None if no model stays loaded between requests."""
        if KEPT_FOR_NOTHING.fullmatch(self._keep_alive):
            return None
        return LoadRequest(partial(self._load_model, model))

    def _load_model(self, model: ModelConfig, cut: Deadline) -> None:
        target = self._request_target(model.tag)
        refused = self._forwards.refusal(target)
        if refused is not None:
            raise refused
        body = {"model": model.tag, "stream": False, "keep_alive": self._keep_alive, **LOADED_AS}
        body["options"] = load_options(model)
        status, said = self._http.tell(
            "POST", "/api/generate", target, payload=body, seconds=self._load_seconds, cut=cut
        )
        if status != httpx.codes.OK:
            raise server_errors.reported(target, status, said, known=tags_of(self))[0]

    def _model_digest(self, tag: str) -> str:
        """The digest of the model when it was first asked for; "" if the server does not say."""
        if tag not in self._digests:
            self._digests[tag] = self._listed_digest(tag)
        return self._digests[tag]

    def _listed_digest(self, tag: str) -> str:
        try:
            found = {model.tag: model.digest for model in self.list_models()}
        except ModelError:
            return ""
        return found.get(tag) or found.get(f"{tag}:latest", "")

    def _ask_api(self, method: str, path: str, kind: type[ReplyT], *, tag: str = "") -> ReplyT:
        if not tag:
            return self._http.ask(method, path, kind, self._request_target(""))
        return self._http.ask(
            method, path, kind, self._request_target(tag), payload={"model": tag}, known=lambda: tags_of(self)
        )

    def _request_target(self, tag: str) -> RequestTarget:
        return RequestTarget(server=self._server, tag=tag, dialect=OLLAMA)


def connect(config: ModelsConfig) -> OllamaTransport:
    """A transport to `[models].base_url`; nothing is sent yet."""
    return OllamaTransport(config, open_client(config, config.base_url))


def load_options(model: ModelConfig) -> dict[str, Any]:
    """The options that a model is loaded with: the same for all requests, or it would be loaded again."""
    return {"num_ctx": model.window}


def encode(request: ChatRequest, *, keep_alive: str) -> str:
    """The body of a request for a chat, or for the text of a gap. Only options that concern the answer differ between
    prompts: another `num_ctx` would make the server load the model again.
    """
    sampling, gap = request.sampling, request.gap
    body: dict[str, Any] = {"model": request.model.tag, "stream": True}
    if gap is not None:
        body |= {"prompt": gap.before, "suffix": gap.after}
    else:
        system = [{"role": "system", "content": request.system}] if request.system else []
        body["messages"] = [*system, {"role": "user", "content": request.prompt}]
    if request.schema is not None:
        body["format"] = request.schema
    body |= {"keep_alive": keep_alive, "think": False, "truncate": False, **LOADED_AS}
    if request.wants_logprobs:
        body |= {"logprobs": True, "top_logprobs": LIKELY_TOKENS}
    body["options"] = {
        **load_options(request.model),
        "num_predict": request.max_tokens,
        "temperature": sampling.temperature,
        "seed": sampling.seed,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "repeat_penalty": 1.0,
        "stop": [] if gap is None else list(gap.stop),
    }
    return json.dumps(body, separators=(",", ":"))


def _as_choice(token: _OllamaToken) -> TokenChoice:
    return TokenChoice(
        token=token.token, top=tuple((likely.token, likely.logprob) for likely in token.top_logprobs)
    )
