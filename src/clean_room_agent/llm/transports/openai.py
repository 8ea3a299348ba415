"""Transport to servers with OpenAI's chat API: vLLM, llama-server, LM Studio, llama-cpp-python's server.

A gap is filled by llama-server's own `/infill`, which knows the marks of its model, and elsewhere by `/v1/completions` with a
`suffix`. `/infill` drops what does not fit one batch (three quarters of it before the gap, a quarter behind it) and says
nothing of it, so where that may be, the answer's count is compared with the server's count of the two texts.
"""

import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import httpx
from msgspec import Struct, field
from msgspec.structs import replace

from clean_room_agent.errors import ModelError, ModelNotFound, ServerFailed
from clean_room_agent.llm.answer_rules import JsonSchema
from clean_room_agent.llm.model_config import ModelsConfig
from clean_room_agent.llm.token_estimator import estimate
from clean_room_agent.llm.transport import (
    ChatRequest,
    Gap,
    ModelDetails,
    ModelServer,
    RawAnswer,
    ServedModel,
    tags_of,
)
from clean_room_agent.llm.transports import server_errors
from clean_room_agent.llm.transports.connections import ForwardGuard, Forwarding, open_client
from clean_room_agent.llm.transports.http import Count, HttpServer, ServerVersion
from clean_room_agent.llm.transports.lora import MARK, AdapterList, LoraTags
from clean_room_agent.llm.transports.openai_answer import OpenAiAnswer
from clean_room_agent.llm.transports.server_errors import OPENAI, RequestTarget

INFILL = "/infill"
LIKELY_TOKENS = 20
LOAD_SECONDS = 60.0
"""A llama-server in router mode reads a model of some gigabytes before it answers a question about it."""
SAFE_BEFORE, SAFE_AFTER = 350, 100
"""Tokens around a gap, by their upper estimate, that fit the batch of any llama-server in use (512)."""
TEMPLATE_KWARGS = {"enable_thinking": False}
"""Switches thinking off, in the way that chat templates know."""
NO_THOUGHTS = {"thinking_budget_tokens": 0}
"""The same for llama-server, which ends a thought itself where the template does not listen."""


class _Meta(Struct, frozen=True, kw_only=True):
    n_ctx: Count | None = None
    n_ctx_train: Count | None = None


class _Served(Struct, frozen=True, kw_only=True):
    id: str
    owned_by: str = ""
    max_model_len: Count | None = None
    meta: _Meta | None = None
    max_context_length: Count | None = None
    loaded_context_length: Count | None = None


class _Models(Struct, frozen=True, kw_only=True):
    data: list[_Served]


class _Settings(Struct, frozen=True, kw_only=True):
    n_ctx: Count | None = None


class _Props(Struct, frozen=True, kw_only=True):
    default_generation_settings: _Settings = field(default_factory=_Settings)
    build_info: str = ""
    total_slots: Count | None = None


class _Count(Struct, frozen=True, kw_only=True):
    count: Count


class _Whole(Struct, frozen=True, kw_only=True):
    prompt: str


class _TokenNumbers(Struct, frozen=True, kw_only=True):
    tokens: list[int]


class OpenAiTransport(ModelServer):
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
        """`key` is the one that `http` sends; it is removed from what the server reports."""
        self._config = config
        self._template_kwargs = config.extra_body.get("chat_template_kwargs", TEMPLATE_KWARGS)
        self._owners: frozenset[str] = frozenset()
        """Who the server says its models belong to, once it was asked: each kind of server has a name for that."""
        self._http = HttpServer(http, config.timeouts, secret=key, timer=timer)
        self._lora = LoraTags(self._loaded_adapters, parallel=config.parallel > 1)
        self._forwards = ForwardGuard(self._forward_destination, allowed=config.allow_remote)

    def send(self, request: ChatRequest) -> RawAnswer:
        """The outcome of one request; what went wrong is its `error`."""
        target = self._request_target(request.model.tag)
        path, encoded = "/v1/chat/completions", encode(request, self._config)
        try:
            if request.gap is not None:
                path, encoded = self._fill_request(request, request.gap)
            encoded |= {"model": self._lora.model(request.model.tag), **self._lora.fields(request.model.tag)}
            if "llamacpp" in self._owners and path != INFILL and self._template_kwargs == TEMPLATE_KWARGS:
                encoded = NO_THOUGHTS | encoded
        except ModelError as refused:
            return RawAnswer(request_body=json.dumps(encoded, separators=(",", ":")), error=refused)
        body = json.dumps(encoded, separators=(",", ":"))
        elsewhere = self._forwards.refusal(target)
        if elsewhere is not None:
            return RawAnswer(request_body=body, error=elsewhere)
        collected = OpenAiAnswer(target, lambda: tags_of(self), request, streaming=self._config.streaming)
        error = self._http.stream(path, body, collected, target)
        answer = collected.as_answer(body, error)
        if path == INFILL and request.gap is not None and error is None:
            return replace(answer, error=self._cut_gap(request.gap, answer, target))
        return answer

    def window(self, tag: str) -> int | None:
        """The window that the server gives the model, in tokens; None if it does not say.

        Raises:
            ModelError: the server does not have the model, or cannot be asked.
        """
        return self.show(tag).served

    def count(self, tag: str, system: str, prompt: str) -> int | None:
        """The tokens of a request with these texts, as vLLM and llama-server count them; None from another server."""
        try:
            return self._count_message_tokens(tag, _chat_messages(system, prompt))
        except ModelError:
            return None

    def digest(self, tag: str) -> str | None:  # noqa: ARG002 - Transport's signature
        """No digest: these servers have none."""
        return ""

    def version(self) -> str:
        """The kind and version of the server, as far as it says.

        Raises:
            ModelError: it does not list its models.
        """
        self._list_models()
        if "vllm" in self._owners:
            found = self._http.ask_if_there("/version", ServerVersion, self._request_target(""))
            return f"vLLM {found.version}" if found else "vLLM"
        if "llamacpp" in self._owners:
            props = self._http.ask_if_there("/props", _Props, self._request_target(""))
            return f"llama-server {props.build_info}".strip() if props else "llama-server"
        if self._owners == {"me"}:
            return "llama-cpp-python"
        return "LM Studio" if self._lm_studio_models() else "an OpenAI-compatible server"

    def list_models(self) -> tuple[ServedModel, ...]:
        """The models of the server, by tag; it reports neither digests nor sizes.

        Raises:
            ModelError: the server cannot be asked.
        """
        tags = sorted({model.id for model in self._list_models()})
        return tuple(ServedModel(tag=tag, digest="", size_bytes=0) for tag in tags)

    def slots(self, tag: str) -> int | None:
        """How many requests llama-server answers at a time for the model; None from another server."""
        props = self._props(tag)
        return props.total_slots if props else None

    def show(self, tag: str) -> ModelDetails:
        """One model: the window that the server gives it, and the one that it was trained for, if it says so.

        Raises:
            ModelNotFound: the server does not list it. (Some would answer anyway, with another model.)
            ModelError: the server cannot be asked.
        """
        models = {model.id: model for model in self._list_models()}
        name = tag if tag in models else self._lora.model(tag)
        if name not in models:
            raise server_errors.no_model(self._request_target(tag), tuple(sorted(models)))
        model = models[name]
        meta = model.meta or _Meta()
        # vLLM states the window for the model, but not for its adapters.
        lengths = (each.max_model_len for each in (model, *models.values()))
        served = meta.n_ctx or next((length for length in lengths if length), None)
        trained = meta.n_ctx_train
        if served is None:
            studio = {each.id: each for each in self._lm_studio_models()}.get(tag)
            if studio is not None:
                served, trained = studio.loaded_context_length, studio.max_context_length
        if served is None:
            props = self._props(tag)
            served = props.default_generation_settings.n_ctx if props else None
        return ModelDetails(tag=tag, context_length=trained, capabilities=(), served=served or None)

    def _props(self, tag: str) -> _Props | None:
        """What llama-server says about the model, which one in router mode loads first; None from another server."""
        path = f"/props?model={quote(tag)}"
        return self._http.ask_if_there(path, _Props, self._request_target(tag), seconds=LOAD_SECONDS)

    def _list_models(self) -> list[_Served]:
        models = self._http.ask("GET", "/v1/models", _Models, self._request_target("")).data
        self._cache_owners(models)
        return models

    def _cache_owners(self, models: list[_Served]) -> frozenset[str]:
        """The owners of the models, which are cached."""
        self._owners = frozenset(model.owned_by for model in models)
        return self._owners

    def _lm_studio_models(self) -> list[_Served]:
        """The models as LM Studio's own API lists them; none from another server."""
        found = self._http.ask_if_there("/api/v0/models", _Models, self._request_target(""))
        return found.data if found else []

    def _forward_destination(self, tag: str) -> str:
        """The machine to which Ollama, which also has this API, forwards the model's prompts; "" from another server."""
        target = self._request_target(tag)
        try:
            said = self._http.ask("POST", "/api/show", Forwarding, target, payload={"model": tag})
        except (ModelNotFound, ServerFailed):
            return ""
        return said.destination(tag)

    def _loaded_adapters(self, tag: str) -> tuple[str, AdapterList] | None:
        """The tag's model as llama-server lists it, and its adapters; in router mode it lists a model for each adapter."""
        listed = self._http.ask_if_there("/v1/models", _Models, self._request_target(""))
        if listed is None or "llamacpp" not in self._cache_owners(listed.data):
            return None
        name = tag if tag in {model.id for model in listed.data} else tag.partition(MARK)[0]
        found = self._http.ask_if_there(
            f"/lora-adapters?model={quote(name)}",
            AdapterList,
            self._request_target(tag),
            seconds=LOAD_SECONDS,
        )
        return None if found is None else (name, found)

    def _fill_request(self, request: ChatRequest, gap: Gap) -> tuple[str, dict[str, Any]]:
        """The path that fills gaps on this server, and the body for it. Raises ModelError if it does not tell what it is."""
        if not self._owners:
            self._list_models()
        path = INFILL if "llamacpp" in self._owners else "/v1/completions"
        return path, encode_gap(request, gap, self._config, own=path == INFILL)

    def _cut_gap(self, gap: Gap, answer: RawAnswer, target: RequestTarget) -> ModelError | None:
        """The error for a request that the server did not read whole."""
        if estimate(gap.before) <= SAFE_BEFORE and estimate(gap.after) <= SAFE_AFTER:
            return None
        try:
            need = sum(self._count_text_tokens(target.tag, text) for text in (gap.before, gap.after))
        except ModelError as unknown:
            return unknown
        if answer.prompt_tokens is not None and answer.prompt_tokens >= need:
            return None
        return server_errors.cut_gap(target, answer.prompt_tokens, need)

    def _count_text_tokens(self, tag: str, text: str, *, special: bool = False) -> int:
        """The tokens of a text, as llama-server counts them; whether with those that mark its parts."""
        asked = {
            "model": self._lora.model(tag),
            "content": text,
            "add_special": special,
            "parse_special": special,
        }
        return len(
            self._http.ask(
                "POST", "/tokenize", _TokenNumbers, self._request_target(tag), payload=asked
            ).tokens
        )

    def _count_message_tokens(self, tag: str, messages: list[dict[str, str]]) -> int | None:
        asked = {
            "model": self._lora.model(tag),
            "messages": messages,
            "chat_template_kwargs": self._template_kwargs,
        }
        if "vllm" in self._owners:
            return self._http.ask("POST", "/tokenize", _Count, self._request_target(tag), payload=asked).count
        if "llamacpp" in self._owners:
            whole = self._http.ask(
                "POST", "/apply-template", _Whole, self._request_target(tag), payload=asked
            )
            return self._count_text_tokens(tag, whole.prompt, special=True)
        return None

    def _request_target(self, tag: str) -> RequestTarget:
        return RequestTarget(server=self._config.base_url, tag=tag, dialect=OPENAI)


def connect(config: ModelsConfig, *, key: str = "") -> OpenAiTransport:
    """A transport to `[models].base_url`, with or without its `/v1`; nothing is sent yet."""
    http = open_client(config, config.base_url.removesuffix("/v1"), key=key)
    return OpenAiTransport(config, http, key=key)


def encode(request: ChatRequest, config: ModelsConfig) -> dict[str, Any]:
    """The body of a chat request.

    A repetition penalty would punish copying code into a search block, so it is switched off, under either name: if it
    were left out, servers would take it from the model's own files.
    """
    sampling = request.sampling
    messages = _chat_messages(request.system, request.prompt)
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
        "chat_template_kwargs": TEMPLATE_KWARGS,
    }
    if sampling.top_k:
        body["top_k"] = sampling.top_k
    if request.schema is not None:
        body |= _schema_fields(request.identity.prompt, request.schema, config)
    elif request.grammar and config.grammar:
        body["grammar"] = request.grammar
    if request.wants_logprobs and config.logprobs:
        body |= {"logprobs": True, "top_logprobs": LIKELY_TOKENS}
    return body | config.extra_body


def encode_gap(request: ChatRequest, gap: Gap, config: ModelsConfig, *, own: bool) -> dict[str, Any]:
    """The body of a request to fill a gap, in llama-server's `own` form or in that of a completion."""
    sampling = request.sampling
    body: dict[str, Any] = {"stream": config.streaming, "stop": list(gap.stop)}
    body |= {"temperature": sampling.temperature, "seed": sampling.seed, "top_p": sampling.top_p}
    body |= {"repeat_penalty": 1.0, "repetition_penalty": 1.0}
    if sampling.top_k:
        body["top_k"] = sampling.top_k
    if own:
        body |= {"input_prefix": gap.before, "input_suffix": gap.after, "cache_prompt": True}
        body["n_predict"] = request.max_tokens
    else:
        body |= {"prompt": gap.before, "suffix": gap.after, "max_tokens": request.max_tokens}
        if config.streaming:
            body["stream_options"] = {"include_usage": True}
    if request.wants_logprobs and config.logprobs:
        body["n_probs" if own else "logprobs"] = 1
    return body | {key: value for key, value in config.extra_body.items() if key != "chat_template_kwargs"}


def _chat_messages(system: str, prompt: str) -> list[dict[str, str]]:
    told = [{"role": "system", "content": system}] if system else []
    return [*told, {"role": "user", "content": prompt}]


def _schema_fields(name: str, schema: JsonSchema, config: ModelsConfig) -> dict[str, Any]:
    """The fields that tell the server the answer's schema."""
    match config.schema_dialect:
        case "json_schema":
            described = {"name": name, "strict": True, "schema": schema}
            return {"response_format": {"type": "json_schema", "json_schema": described}}
        case "json_object":
            return {"response_format": {"type": "json_object", "schema": schema}}
        case "structured_outputs":
            return {"structured_outputs": {"json": schema}}
