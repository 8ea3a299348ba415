"""What a model server's failures are to us: one class of `ModelError` each, with what to do about it."""

import json
from dataclasses import dataclass
from typing import Any

from clean_room_agent.errors import (
    DegenerateOutput,
    ModelError,
    ModelNotFound,
    ServerBusy,
    ServerFailed,
    ServerTimeout,
    ServerUnreachable,
    WindowExceeded,
)
from clean_room_agent.llm.exchange import Refusal

SHOWN_CHARS = 300
SERVER_LOG = "the server's own log says more (Ollama: `journalctl -u ollama`, or ~/.ollama/logs/server.log)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The server and the model that a request was for."""

    server: str
    """The base URL."""
    tag: str


def refused_connection(target: Target, reason: str) -> ServerUnreachable:
    """Nobody answers at the address."""
    return ServerUnreachable(
        f"no model server answers at {target.server}: {reason}",
        hint="start it (Ollama: `ollama serve`), or mend base_url in [models]",
    )


def broken_off(target: Target, reason: str, *, begun: bool) -> ModelError:
    """The connection broke; `begun`: after the first token."""
    if begun:
        return ServerFailed(
            f"{target.server} broke off in the middle of {target.tag}'s answer: {reason}",
            hint=f"the model's process may have died; {SERVER_LOG}",
        )
    return ServerUnreachable(
        f"the connection to {target.server} broke before the first token of {target.tag}'s answer: {reason}",
        hint=f"the server may have stopped or run out of memory; {SERVER_LOG}",
    )


def late(target: Target, key: str, seconds: float) -> ServerTimeout:
    """A deadline of `[models.timeouts]` has passed; `key` names it."""
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


def endless(target: Target, said: str) -> DegenerateOutput:
    """The stream ended cleanly, but without its last line."""
    return DegenerateOutput(
        f"{target.tag} at {target.server} ended its answer without an end: the server stops a model that repeats "
        f"itself. Its last words: {said[-80:]!r}",
        hint="try again with another seed or a little temperature, or take another model for this role",
    )


def not_the_protocol(target: Target, what: str) -> ServerFailed:
    """Something came that is not of the protocol."""
    return ServerFailed(
        f"{target.server} does not speak Ollama's protocol: {what[:SHOWN_CHARS]}",
        hint="is base_url in [models] the address of an Ollama server, without a path such as /v1?",
    )


def ended_early(target: Target, reason: str) -> ServerFailed:
    """The server ended the answer for a reason of its own, such as unloading the model."""
    return ServerFailed(
        f"{target.server} ended {target.tag}'s answer with the reason {reason!r}",
        hint=f"another program may use the server's memory; {SERVER_LOG}",
    )


def reported(
    target: Target, status: int, body: str, *, known: tuple[str, ...] = ()
) -> tuple[ModelError, Refusal | None]:
    """The error that the server reports, by status line or (status 200) within the stream.

    `known`: the models that it has, for the hint. With a `Refusal` when the prompt was too long.
    """
    message = _message(body)
    refusal = _refusal(message) if status in {200, 400, 500} else None
    if refusal is not None:
        return _too_long(target, refusal), refusal
    return _plain(target, status, message, known), None


def _plain(target: Target, status: int, message: str, known: tuple[str, ...]) -> ModelError:
    said = message[:SHOWN_CHARS] or "(no message)"
    if status == 404 and "model" in message:
        have = f"; it has: {', '.join(known)}" if known else ""
        return ModelNotFound(
            f"{target.server} does not have the model {target.tag!r}",
            hint=f"run `ollama pull {target.tag}`, or name another one in [models]{have}",
        )
    if status in {404, 405} or 300 <= status < 400:
        return not_the_protocol(target, f"status {status}: {said}")
    if status == 503 or "server busy" in message:
        return ServerBusy(
            f"{target.server} is busy: {said}",
            hint="wait for its other work to end, lower parallel in [models], or raise the server's OLLAMA_MAX_QUEUE",
        )
    if status == 403:
        hint = "the server refuses this host name: use 127.0.0.1 in base_url, or allow the name in OLLAMA_ORIGINS"
    elif "unexpectedly stopped" in message or "failed to load" in message or "memory" in message:
        hint = f"a smaller model or context_window needs less memory; {SERVER_LOG}"
    elif status == 400:
        hint = f"the server may be too old for the request, or {target.tag} cannot do what it asks; see `cra check`"
    else:
        hint = SERVER_LOG
    where = "in the middle of its answer" if status == 200 else f"with status {status}"
    return ServerFailed(f"{target.tag} at {target.server} failed {where}: {said}", hint=hint)


def _too_long(target: Target, refusal: Refusal) -> WindowExceeded:
    size = "" if refusal.prompt_tokens is None else f" of {refusal.prompt_tokens} tokens"
    window = "its window" if refusal.window is None else f"its window of {refusal.window}"
    return WindowExceeded(
        f"{target.server} refused a prompt{size} as too long for {target.tag}: it exceeds {window}",
        hint="the estimate was too low: raise token_factor in [models], or lower context_window in [budget] to the "
        "window that the server gives this model",
    )


def _message(body: str) -> str:
    """The error's words: the `error` field of a JSON body, else the body."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return body.strip()
    error = data.get("error", "") if isinstance(data, dict) else data
    return error if isinstance(error, str) else json.dumps(error)


def _refusal(message: str) -> Refusal | None:
    if "exceed_context_size" in message or '"n_ctx"' in message:
        figures = _embedded(message)
        return Refusal(
            prompt_tokens=_count(figures.get("n_prompt_tokens")), window=_count(figures.get("n_ctx"))
        )
    if "exceeds the context length" in message or "exceeds the available context size" in message:
        return Refusal()
    return None


def _embedded(message: str) -> dict[str, Any]:
    """The figures of the JSON object that the message holds, wherever they stand in it; empty without any."""
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


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
