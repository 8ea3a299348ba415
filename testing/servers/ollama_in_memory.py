"""Ollama's protocol without a server: what the real transport sends is answered in this process, stream and faults included."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
from msgspec import Struct, field

from clean_room_agent.llm.model_config import ModelsConfig
from clean_room_agent.llm.transports.ollama import OllamaTransport
from testing.servers.ollama_script import (
    FRAMING,
    Answer,
    Answerer,
    ChatCall,
    Fills,
    behind_gap,
    count_tokens,
    gap_of,
    overflow_message,
    probe_answer,
    stopped,
    stream_chunks,
    stream_lines,
    texts_of,
)
from testing.servers.ollama_server import DEFAULT_MODELS


class MemoryOllama(Struct, kw_only=True):
    """Answers as `OllamaServer` does, but for how long it takes and how a connection breaks."""

    answerer: Answerer
    models: Sequence[str] = DEFAULT_MODELS
    fills: Fills = ""
    calls: list[ChatCall] = field(default_factory=list)
    """What reached the model."""

    def transport(self, config: ModelsConfig) -> OllamaTransport:
        """The program's own transport, whose requests come here."""
        http = httpx.Client(base_url=config.base_url, transport=httpx.MockTransport(self._handle))
        return OllamaTransport(config, http, timer=lambda: 0.0)

    def _handle(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/api/tags":
            listed = [{"name": tag, "model": tag, "size": 1, "digest": "0" * 64} for tag in self.models]
            return httpx.Response(200, json={"models": listed})
        if request.url.path == "/api/show":
            return httpx.Response(200, json={})
        body = json.loads(request.content)
        if body["model"] not in self.models:
            return httpx.Response(404, json={"error": f"model '{body['model']}' not found"})
        return self._chat(body)

    def _chat(self, body: dict[str, Any]) -> httpx.Response:
        gap = gap_of(body)
        if gap is not None and not self.fills:
            return httpx.Response(400, json={"error": f"{body['model']!r} does not support insert"})
        (system, prompt), options = texts_of(body), body.get("options", {})
        need = count_tokens(system) + count_tokens(prompt) + count_tokens(behind_gap(body)) + FRAMING
        if need > options["num_ctx"]:
            error = overflow_message("plain", need, options["num_ctx"])
            return httpx.Response(400, json={"error": error})
        schema = body.get("format")
        call = ChatCall(
            number=len(self.calls),
            model=body["model"],
            system=system,
            prompt=prompt,
            schema=schema if isinstance(schema, dict) else None,
            options=options,
            body=body,
            gap=gap,
        )
        self.calls.append(call)
        known = None if gap is None else probe_answer(gap, self.fills)
        said = self.answerer(call) if known is None else known
        answer = stopped(Answer(text=said) if isinstance(said, str) else said, options.get("stop", []))
        if answer.status != httpx.codes.OK:
            return httpx.Response(answer.status, json={"error": answer.error})
        return httpx.Response(200, content=_stream(body, answer, need))


def _stream(body: dict[str, Any], answer: Answer, need: int) -> Iterator[bytes]:
    yield from stream_chunks(stream_lines(body, answer, need, logprobs=True), answer)
    if answer.close is not None:
        raise httpx.RemoteProtocolError("peer closed connection without sending complete message body")
