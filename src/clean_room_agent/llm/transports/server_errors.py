"""Maps a model server's failures to our errors, one class of `ModelError` each, with what to do about it; and reads the
figures in each server's message about a prompt that is too long.
"""

import json
import re
from typing import Any

from msgspec import Struct

from clean_room_agent.artifacts.names import listed
from clean_room_agent.errors import (
    DegenerateOutput,
    ForwardingServer,
    ModelError,
    ModelNotFound,
    ServerBusy,
    ServerFailed,
    ServerTimeout,
    ServerUnreachable,
    WindowExceeded,
)
from clean_room_agent.llm.transport import WindowRefusal

FILTERS = frozenset(
    {"content_filter", "safety", "recitation", "moderation", "prohibited_content", "guardrail_intervened"}
)
"""Reasons why a server that judges what its models say ends an answer."""
MAX_DIGITS = 12
_MOST = r"maximum context length is (?P<window>\d+)(?: tokens)?"
_WORDINGS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # vLLM and llama-cpp-python's server: prompt and answer are counted together.
        rf"{_MOST}.{{0,40}}requested \d+ tokens \((?P<prompt>\d+) (?:in|for) (?:the|your) (?:messages|prompt)",
        rf"{_MOST}.{{0,40}}requested (?P<prompt>\d+) tokens? in the",
        rf"{_MOST}.{{0,40}}(?:request|prompt|messages) (?:has|have|contains|resulted in) (?P<prompt>\d+)",
        # vLLM stops counting at one token more than fits, so this count of the prompt says nothing.
        rf"{_MOST}.{{0,40}}requested \d+ output tokens and your prompt contains at least \d+",
        r"passed \d+ input tokens.{0,80}context length is only (?P<window>\d+)",
        r"passed \d+ input characters.{0,80}context length is only (?P<window>\d+)",
        r"prompt \(length (?P<prompt>\d+)\) is longer than the maximum model length of (?P<window>\d+)",
        r"requested tokens \((?P<prompt>\d+)\) exceed context window of (?P<window>\d+)",
        # LM Studio.
        r"keep the first (?P<prompt>\d+) tokens.{0,120}context length of only (?P<window>\d+)",
        r"input length (?P<prompt>\d+) exceeds context length (?P<window>\d+)",
        r"reached context length of (?P<window>\d+) tokens",
        # Figures in another form, or none.
        _MOST,
        r"exceeds the (?:context length|available context size)",
        r"context_length_exceeded|context size has been exceeded|greater than the context length",
        r"max_tokens must be at least 1, got -",
        r"input is too large to process",
    )
)
MARKUP = re.compile(r"<(style|script|title)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)
SHOWN_CHARS = 300
SHOWN_MODELS = 20


def read_refusal(message: str) -> WindowRefusal | None:
    """What a server's error says about a prompt that is too long; None if it is about something else."""
    if "exceed_context_size" in message or '"n_ctx"' in message:
        figures = _embedded_figures(message)
        return WindowRefusal(
            prompt_tokens=_positive_count(figures.get("n_prompt_tokens")),
            window=_positive_count(figures.get("n_ctx")),
        )
    for wording in _WORDINGS:
        found = wording.search(message)
        if found is not None:
            named = found.groupdict()
            return WindowRefusal(
                prompt_tokens=_parse_number(named.get("prompt")), window=_parse_number(named.get("window"))
            )
    return None


def _embedded_figures(message: str) -> dict[str, Any]:
    """The figures in the JSON object in the message, at any depth; empty if there is none."""
    start = message.find("{")
    try:
        data, _ = json.JSONDecoder().raw_decode(message, max(start, 0))
    except (ValueError, RecursionError):
        return {}
    while isinstance(data, dict):
        if "n_ctx" in data or "n_prompt_tokens" in data:
            return data
        data = data.get("error")
    return {}


def _parse_number(digits: str | None) -> int | None:
    return None if digits is None or len(digits) > MAX_DIGITS else int(digits)


def _positive_count(value: object) -> int | None:
    return value if isinstance(value, int) and 0 < value < 10**MAX_DIGITS else None


class Dialect(Struct, frozen=True, kw_only=True):
    """What errors and hints say about one kind of server."""

    protocol: str
    start: str
    """How it is started."""
    address: str
    """What base_url must be."""
    log: str
    """Where its own log is."""
    missing: str
    """How to get a missing model; `{tag}` is replaced by the model's name."""
    queue: str
    """How to make its queue longer."""
    forbidden: str
    """What to do if it answers 401 or 403."""
    bad_request: str
    """What to do if it answers 400 or 422; `{tag}` is replaced by the model's name."""
    silent: str = ""
    """What else to do if it breaks off before the first token."""


OLLAMA = Dialect(
    protocol="Ollama's protocol",
    start="start it (Ollama: `ollama serve`), or fix base_url in [models]",
    address='is base_url in [models] the address of an Ollama server, without a path such as /v1? (provider = "openai" '
    "is for other servers)",
    log="the server's own log says more (Ollama: `journalctl -u ollama`, or ~/.ollama/logs/server.log)",
    missing="run `ollama pull {tag}`, or name another one in [models]",
    queue="raise the server's OLLAMA_MAX_QUEUE",
    forbidden="the server refuses this host name: use 127.0.0.1 in base_url, or allow the name in OLLAMA_ORIGINS",
    bad_request="the server may be too old for the request, or {tag} cannot do what it asks; see `cra check`",
)
OPENAI = Dialect(
    protocol="OpenAI's protocol",
    start="start it, or fix base_url in [models] (vLLM usually has port 8000, llama-server 8080 or 9931, LM Studio 1234)",
    address='is base_url in [models] the address of a server with /v1/chat/completions? (provider = "ollama" is for '
    "Ollama)",
    log="the server's own log says more",
    missing="start the server with it, or name in [models] what the server calls its model",
    queue="give the server more slots",
    forbidden="the server wants a key: set api_key_env in [models] to the name of the environment variable that holds "
    "it",
    bad_request="the server may not know a part of the request: schema_dialect, logprobs and extra_body in [models] "
    "change what is sent; see `cra check`",
    silent="; if it breaks off only at some prompts, streaming = false in [models] makes it say why",
)


class RequestTarget(Struct, frozen=True, kw_only=True):
    """The server and the model that a request was for."""

    server: str
    """The base URL."""
    tag: str
    dialect: Dialect


def refused_connection(target: RequestTarget, reason: str) -> ServerUnreachable:
    """The error if nothing answers at the address."""
    return ServerUnreachable(
        f"no model server answers at {target.server}: {reason}", hint=target.dialect.start
    )


def broken_off(target: RequestTarget, reason: str, *, begun: bool) -> ModelError:
    """The error for a broken connection; `begun`: after the first token."""
    if begun:
        return ServerFailed(
            f"{target.server} broke off in the middle of {target.tag}'s answer: {reason}",
            hint=f"the model's process may have died; {target.dialect.log}",
        )
    return ServerUnreachable(
        f"the connection to {target.server} broke before the first token of {target.tag}'s answer: {reason}",
        hint=f"the server may have stopped or run out of memory; {target.dialect.log}{target.dialect.silent}",
    )


def busy(target: RequestTarget, said: str) -> ServerBusy:
    """The error for a server that is there, but has no time."""
    return ServerBusy(
        f"{target.server} is busy: {said}",
        hint="another program may be asking it: wait for its other work to end, lower parallel in [models], or "
        f"{target.dialect.queue}",
    )


def late(target: RequestTarget, key: str, seconds: float) -> ServerTimeout:
    """The error for a deadline of `[models.timeouts]` that has passed; `key` names it."""
    what = {
        "first_byte": f"did not begin to answer within {seconds:g} s",
        "idle": f"fell silent for {seconds:g} s in the middle of its answer",
        "total": f"did not finish its answer within {seconds:g} s",
    }[key]
    return ServerTimeout(
        f"{target.tag} at {target.server} {what}",
        hint=f"a long queue, a slow load or a long prompt can take that: raise {key} in [models.timeouts], "
        "or take a smaller model or window",
    )


def endless(target: RequestTarget, said: str) -> DegenerateOutput:
    """The error for a stream that ended cleanly, but without its last line."""
    return DegenerateOutput(
        f"{target.tag} at {target.server} closed the stream before its end: the server stops a model that repeats "
        f"itself. Its last words: {said[-80:]!r}",
        hint="try again with another seed or a little temperature, or take another model for this role",
    )


def not_the_protocol(target: RequestTarget, what: str) -> ServerFailed:
    """The error for something that is not part of the protocol."""
    return ServerFailed(
        f"{target.server} does not speak {target.dialect.protocol}: {what[:SHOWN_CHARS]}",
        hint=target.dialect.address,
    )


def ended_early(target: RequestTarget, reason: str) -> ServerFailed:
    """The error for an answer that the server ended for its own reasons, such as unloading the model."""
    return ServerFailed(
        f"{target.server} ended {target.tag}'s answer with the reason {reason!r}",
        hint=f"the server filters what its models say: switch that off, or use another server; {target.dialect.log}"
        if reason.lower() in FILTERS
        else f"another program may use the server's memory; {target.dialect.log}",
    )


def reported(
    target: RequestTarget, status: int, body: str, *, known: tuple[str, ...] = ()
) -> tuple[ModelError, WindowRefusal | None]:
    """The error that the server reports, by status line or (status 200) within the stream.

    `known` are the models that it has, for the hint. There is a `Refusal` if the prompt was too long.
    """
    error = _error_of(body)
    whole = error if isinstance(error, str) else json.dumps(error)
    refusal = read_refusal(whole) if status in {200, 400, 413, 422, 500} else None
    if refusal is not None:
        return too_long(target, refusal), refusal
    return _other_error(target, status, _message_of(error), known), None


def _other_error(target: RequestTarget, status: int, message: str, known: tuple[str, ...]) -> ModelError:
    dialect = target.dialect
    said = message[:SHOWN_CHARS] or "(no message)"
    if _is_missing(status, message):
        return no_model(target, known)
    if status in {404, 405} or 300 <= status < 400:
        return not_the_protocol(target, f"status {status}: {said}")
    if status in {429, 503} or "server busy" in message:
        return busy(target, said)
    if status in {401, 403}:
        hint = dialect.forbidden
    elif "unexpectedly stopped" in message or "failed to load" in message or "memory" in message:
        hint = f"a smaller model or context_window needs less memory; {dialect.log}"
    elif status in {400, 422} or "validation error" in message:
        hint = dialect.bad_request.format(tag=target.tag)
    else:
        hint = dialect.log
    where = "in the middle of its answer" if status == 200 else f"with status {status}"
    return ServerFailed(f"{target.tag} at {target.server} failed {where}: {said}", hint=hint)


def _is_missing(status: int, message: str) -> bool:
    if status == 404:
        return "model" in message
    return status == 400 and ("model_not_found" in message or "does not exist" in message)


def no_model(target: RequestTarget, known: tuple[str, ...]) -> ModelNotFound:
    """The error for a model that the server does not have; `known` are the ones that it has."""
    have = f"; it has: {listed(known, SHOWN_MODELS)}" if known else ""
    return ModelNotFound(
        f"{target.server} does not have the model {target.tag!r}",
        hint=target.dialect.missing.format(tag=target.tag) + have,
    )


def forwarded(target: RequestTarget, host: str) -> ForwardingServer:
    """The error for a model whose prompts the server would forward to `host`."""
    return ForwardingServer(
        f"{target.server} forwards prompts for {target.tag} to {host}, which is not this machine, and prompts hold your "
        "code",
        hint="name a model in [models] that runs on this machine, or set allow_remote = true there",
    )


def too_long(target: RequestTarget, refusal: WindowRefusal) -> WindowExceeded:
    """The error for a request that the server refused as too long."""
    size = "" if refusal.prompt_tokens is None else f" of {refusal.prompt_tokens} tokens"
    window = "its window" if refusal.window is None else f"its window of {refusal.window}"
    return WindowExceeded(
        f"{target.server} refused a prompt{size} as too long for {target.tag}: it exceeds {window}",
        hint="lower context_window in [budget] to the window that the server gives this model; if it is that already, "
        "the estimate was too low: raise reserved_tokens (or token_factor, while few calls of this model are known)",
    )


def cut_gap(target: RequestTarget, read: int | None, need: int) -> WindowExceeded:
    """The error for a gap around which a server did not read everything."""
    counted = "an unknown number" if read is None else str(read)
    return WindowExceeded(
        f"{target.server} read {counted} of the {need} tokens around a gap for {target.tag}",
        hint="start llama-server with a larger --batch-size: it reads one batch of them",
    )


def _error_of(body: str) -> object:
    """The error in a JSON body, under any of the names that servers use; otherwise the body itself."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return body.strip()
    if not isinstance(data, dict):
        return data
    return data.get("error") or (data if "message" in data else data.get("detail")) or ""


def _message_of(error: object) -> str:
    """The message of an error; of a page of HTML, its words."""
    if isinstance(error, dict) and isinstance(error.get("message"), str):
        code = error.get("code")
        return f"{error['message']} ({code})" if isinstance(code, str) and code else error["message"]
    if not isinstance(error, str):
        return json.dumps(error)
    return " ".join(MARKUP.sub(" ", error).split()) if error.lstrip().startswith("<") else error
