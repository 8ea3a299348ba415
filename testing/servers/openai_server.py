"""A model server on 127.0.0.1 that speaks OpenAI's chat API as one of four real ones does; the model's mind is a script.

Answers and their faults are those of `ollama_script`. What differs between the four is how they tell their window, how
they refuse a prompt that is too long, and what they leave out of a stream.
"""

import json
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, quote, urlsplit

from testing.client.model_client import SHOUT, Note
from testing.servers.ollama_script import (
    FRAMING,
    Answer,
    Answerer,
    Fills,
    behind_gap,
    chunks_of,
    count_tokens,
    cut_prompt,
    first_choice,
    gap_of,
    limited,
    pieces,
    stop_after,
    texts_of,
)
from testing.servers.ollama_server import DEFAULT_MODELS, OllamaServer, _Handler

WINDOW = 4096
TRAINED = 32_768

Kind = Literal[
    "vllm", "vllm-new", "vllm-old", "llama-server", "llama-cpp-python", "lm-studio", "silent", "mute"
]
"""`silent` cuts long prompts; `mute` answers them with nothing. Neither tells its window."""
OWNERS = {
    "vllm": "vllm",
    "vllm-new": "vllm",
    "vllm-old": "vllm",
    "llama-server": "llamacpp",
    "llama-cpp-python": "me",
}
SUMS = ("vllm", "vllm-new", "vllm-old")
"""The kinds that refuse where prompt and wanted answer together are too long."""


class OpenAiServer(OllamaServer):
    """Use as a context manager, as `OllamaServer`. The window is the server's, whatever a request says."""

    def __init__(
        self,
        script: Answerer | Iterable[Answer | str],
        *,
        kind: Kind = "llama-server",
        models: Sequence[str] = DEFAULT_MODELS,
        window: int = WINDOW,
        logprobs: bool = True,
        usage: bool = True,
        says_done: bool = True,
        key: str = "",
        counts: bool = True,
        adapters: Sequence[str] = (),
        failing: Sequence[int] = (),
        registers: bool = True,
        slots: int | None = None,
        routes: bool = False,
        spared: Literal["", "usage", "timings"] = "",
        fills: Fills = "",
        batch: int = 2048,
        port: int = 0,
    ) -> None:
        """`adapters`: files that llama-server has loaded, in order; `failing`: the statuses with which it first answers the question for them, 0 for no answer; `registers`: whether vLLM takes new ones; `counts`: whether it counts prompts, of the kinds that can; `usage`: whether it counts tokens; `says_done`: whether a stream ends with [DONE]; `key`: which one it wants; `slots`: how many requests llama-server says it answers at a time; `routes`: whether it is in router mode, where only questions that name a model are answered for it, and no model is loaded before one; `spared`: where it says how many tokens of a prompt it had from the one before; `batch`: tokens that llama-server reads at a time, and at most around a gap."""
        super().__init__(script, models=models, logprobs=logprobs, fills=fills, port=port)
        self.batch = batch
        self.kind = kind
        self.own_window = window
        self.usage = usage
        self.slots = slots
        self.routes = routes
        self.spared = spared
        self.last_prompt = ""
        self.says_done = says_done
        self.key = key
        self.counts = counts
        self.adapters = tuple(adapters)
        self.failing = list(failing)
        self.registers = registers
        self._http.RequestHandlerClass = _OpenAiHandler

    def schema(self, body: dict[str, Any]) -> Any:
        """The schema that the request holds the answer to, in any of the three ways."""
        wanted = body.get("response_format", {})
        if wanted.get("type") == "json_schema":
            return wanted["json_schema"]["schema"]
        return wanted.get("schema") or body.get("structured_outputs", {}).get("json")


class _OpenAiHandler(_Handler):
    def do_GET(self) -> None:  # noqa: N802 - the base class's name
        owner = self._owner
        owner.state.paths.append(self.path)
        if not self._may():
            return
        pages: dict[str, dict[str, Any]] = {
            "/v1/models": {"object": "list", "data": [self._described(tag) for tag in owner.models]}
        }
        if owner.kind in SUMS:
            pages["/version"] = {"version": "0.11.0"}
        if owner.kind == "llama-server":
            settings = {"n_ctx": owner.own_window}
            of_model = {"default_generation_settings": settings, "build_info": "b1-0"} | (
                {"total_slots": owner.slots} if owner.slots else {}
            )
            router = {"default_generation_settings": {"params": None, "n_ctx": 0}, "build_info": "b1-0"}
            of_model["model_path"] = "/models/base.gguf"
            pages["/props"] = router | {"role": "router", "model_path": "none"} if owner.routes else of_model
            asked = (
                owner.models if owner.routes else [parse_qs(urlsplit(self.path).query).get("model", [""])[0]]
            )
            pages |= {f"/props?model={quote(tag)}": of_model for tag in asked}
            listed = [{"id": n, "path": path, "scale": 0.0} for n, path in enumerate(owner.adapters)]
            if self.path.startswith("/lora-adapters") and owner.failing:
                status = owner.failing.pop(0)
                if not status:
                    self.connection.recv(1)  # until the client has gone
                    return
                self._json(status, {"error": {"code": status, "message": "Loading", "type": "unavailable"}})
                return
            if self.path.startswith("/lora-adapters"):
                self._plain(200, json.dumps(listed), kind="application/json")
                return
        if owner.kind == "lm-studio":
            lengths = {"max_context_length": TRAINED, "loaded_context_length": owner.own_window}
            pages["/api/v0/models"] = {"data": [{"id": tag} | lengths for tag in owner.models]}
        if self.path in pages:
            self._json(200, pages[self.path])
        else:
            self._json(404, {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}})

    def do_POST(self) -> None:  # noqa: N802 - the base class's name
        if not self._may():
            return
        if self.path == "/api/show":
            self._owner.state.paths.append(self.path)
            self.rfile.read(int(self.headers["content-length"]))
            self._json(404, {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}})
            return
        if self.path in {"/tokenize", "/apply-template"}:
            self._owner.state.paths.append(self.path)
            self._count(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            return
        if self.path == "/v1/load_lora_adapter" and self._owner.kind in SUMS and self._owner.registers:
            self._load(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            return
        super().do_POST()

    def _load(self, body: dict[str, Any]) -> None:
        """As vLLM registers an adapter: words on success, an error where the name is taken or the folder is not there."""
        owner, name = self._owner, body["lora_name"]
        owner.state.paths.append(self.path)
        if name in owner.models:
            message = f"The lora adapter '{name}' has already been loaded."
            self._json(400, {"error": {"message": message, "type": "InvalidUserInput", "code": 400}})
        elif not (Path(body["lora_path"]) / "adapter_config.json").exists():
            message = f"Loading lora {name} failed: No adapter found for {body['lora_path']}"
            self._json(404, {"error": {"message": message, "type": "NotFoundError", "code": 404}})
        else:
            owner.models = (*owner.models, name)
            self._plain(200, f"Success: LoRA adapter '{name}' added successfully.")

    def _count(self, body: dict[str, Any]) -> None:
        kind = self._owner.kind if self._owner.counts else "silent"
        if self.path == "/tokenize" and kind in SUMS:
            self._json(200, {"count": _need(body), "max_model_len": self._owner.own_window})
        elif self._owner.routes and "model" not in body:
            self._json(400, self._worded("model name is missing from the request"))
        elif self.path == "/apply-template" and kind == "llama-server":
            said = "".join(message["content"] for message in body["messages"])
            self._json(200, {"prompt": said + "." * FRAMING})
        elif self.path == "/tokenize" and kind == "llama-server":
            self._json(200, {"tokens": list(range(count_tokens(body["content"])))})
        else:
            self._json(404, {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}})

    @property
    def _owner(self) -> OpenAiServer:
        owner = self.server.owner
        assert isinstance(owner, OpenAiServer)
        return owner

    def _may(self) -> bool:
        if not self._owner.key or self.headers.get("authorization") == f"Bearer {self._owner.key}":
            return True
        given = self.headers.get("authorization", "none")
        self._json(
            401, {"error": {"message": f"Incorrect API key provided: {given}", "code": "invalid_api_key"}}
        )
        return False

    def _described(self, tag: str) -> dict[str, Any]:
        owner = self._owner
        told: dict[str, Any] = {"id": tag, "object": "model", "owned_by": OWNERS.get(owner.kind, "someone")}
        if owner.kind in SUMS:
            told["max_model_len"] = owner.own_window
        if owner.kind == "llama-server" and not owner.routes:
            told["meta"] = {"n_ctx_train": TRAINED}
        return told

    def _chat(self, body: dict[str, Any]) -> None:
        owner = self._owner
        if body["model"] not in owner.models:
            message = f"The model `{body['model']}` does not exist."
            self._json(404, {"error": {"message": message, "type": "NotFoundError", "code": 404}})
            return
        system, prompt = texts_of(body)
        need, window = self._read_tokens(body), owner.own_window
        wanted = need + (body["max_tokens"] if owner.kind in SUMS else 1)
        if wanted > window and owner.kind == "silent":
            system, prompt = cut_prompt(system, prompt, window)
            need = window
        elif wanted > window:
            self._overflow(body, need)
            return
        self._send(body, owner.answer(body, system, prompt), need)

    def _read_tokens(self, body: dict[str, Any]) -> int:
        """The tokens that are read: around a gap, llama-server reads no more than one batch."""
        gap = gap_of(body)
        if self.path != "/infill" or gap is None:
            return _need(body)
        batch = self._owner.batch
        return min(count_tokens(gap[0]), 3 * batch // 4) + min(count_tokens(gap[1]), batch // 4) + FRAMING

    def _refuse_gap(self, body: dict[str, Any]) -> None:
        if self.path == "/infill" and self._owner.kind == "llama-server":
            said = "Infill is not supported by this model: prefix token is missing. "
            self._json(501, {"error": {"code": 501, "message": said, "type": "not_supported_error"}})
        elif self.path == "/v1/completions":
            self._json(400, self._worded("suffix is not currently supported"))
        else:
            self._json(404, {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}})

    def _overflow(self, body: dict[str, Any], need: int) -> None:
        owner, window = self._owner, self._owner.own_window
        room = body.get("max_tokens", body.get("n_predict", 0))
        summed = (
            f"This model's maximum context length is {window} tokens. However, you requested {need + room} tokens "
            f"({need} in the messages, {room} in the completion). Please reduce the length of the messages or completion."
        )
        match owner.kind:
            case "vllm-new":
                message = (
                    f"You passed {window - room + 1} input tokens and requested {room} output tokens. However, the "
                    f"model's context length is only {window} tokens, resulting in a maximum input length of "
                    f"{window - room} tokens. Please reduce the length of the input prompt."
                )
                self._json(400, {"error": {"message": message, "type": "BadRequestError", "code": 400}})
            case "vllm-old":
                self._json(
                    400, {"object": "error", "message": summed, "type": "BadRequestError", "code": 400}
                )
            case "llama-server":
                message = f"request ({need} tokens) exceeds the available context size ({window} tokens), try increasing it"
                kind = {"code": 400, "message": message, "type": "exceed_context_size_error"}
                self._json(400, {"error": kind | {"n_prompt_tokens": need, "n_ctx": window}})
            case "llama-cpp-python" if body["stream"]:
                self._begin()
                self.wfile.write(b"0\r\n\r\n")
            case "lm-studio":
                message = (
                    f"Trying to keep the first {need} tokens when context the overflows. However, the model is loaded "
                    f"with context length of only {window} tokens, which is not enough."
                )
                self._begin()
                self._chunk(b"event: error\n" + _event({"error": {"message": message}}))
                self.wfile.write(b"0\r\n\r\n")
            case "mute":
                self._send(body, Answer(text=""), need)
            case _:
                self._json(400, {"error": {"message": summed, "code": "context_length_exceeded"}})

    def _chunks(self, body: dict[str, Any], answer: Answer, need: int) -> Iterator[bytes]:
        owner = self._owner
        text, reason = limited(answer, body.get("max_tokens", body.get("n_predict", -1)))
        counts: dict[str, Any] = {"prompt_tokens": need, "completion_tokens": count_tokens(text)}
        timings = self._spared(body, counts)
        counted = owner.usage and not answer.cached
        if gap_of(body) is not None:
            return chunks_of(self._filled(body, text, reason, counts), answer)
        if not body.get("stream"):
            message = {"role": "assistant", "content": text, "reasoning_content": answer.thinking or None}
            choice = {"index": 0, "message": message, "finish_reason": reason}
            if self._wants_logprobs(body):
                choice["logprobs"] = {"content": first_choice(text, answer.likely)}
            whole = {"object": "chat.completion", "choices": [choice]} | (
                {"usage": counts, **timings} if counted else {}
            )
            return chunks_of([json.dumps(whole, indent=1).encode()], answer)
        events = list(self._events(body, answer, text, reason))
        ends = not answer.error and not answer.no_end and answer.close is None
        asked = body.get("stream_options", {}).get("include_usage") and owner.kind != "llama-cpp-python"
        if ends and counted and asked:
            events.append(
                _event({"object": "chat.completion.chunk", "choices": [], "usage": counts} | timings)
            )
        if ends and owner.says_done:
            events.append(b"data: [DONE]\n\n")
        return chunks_of(events, answer)

    def _filled(self, body: dict[str, Any], text: str, reason: str, counts: dict[str, Any]) -> list[bytes]:
        """A gap's text: llama-server's own form, or a completion; in one piece, or as the events of a stream."""
        asked = body.get("n_probs") or body.get("logprobs")
        told = first_choice(text, ((text.strip(), 0.5),)) if asked and self._owner.logprobs else []
        if self.path == "/infill":
            evaluated, written = counts["prompt_tokens"], counts["completion_tokens"]
            ended: dict[str, Any] = {"stop": True, "stop_type": "limit" if reason == "length" else "word"}
            ended |= {"tokens_evaluated": evaluated, "tokens_predicted": written, "timings": {"cache_n": 0}}
            likely = {"completion_probabilities": told} if told else {}
            if not body["stream"]:
                return [json.dumps({"content": text} | likely | ended).encode()]
            piece = {"content": text, "stop": False} | likely
            return [_event(piece), _event({"content": ""} | ended)]
        choice: dict[str, Any] = {"index": 0, "text": text, "finish_reason": reason}
        if told:
            choice["logprobs"] = {
                "tokens": [one["token"] for one in told],
                "token_logprobs": [one["logprob"] for one in told],
            }
        whole = {"object": "text_completion", "choices": [choice], "usage": counts}
        if not body["stream"]:
            return [json.dumps(whole).encode()]
        return [_event(whole), b"data: [DONE]\n\n"]

    def _spared(self, body: dict[str, Any], counts: dict[str, Any]) -> dict[str, Any]:
        """What of the prompt was that of the request before, put into the usage, or beside it."""
        owner = self._owner
        prompt = "\n".join(texts_of(body))
        had = count_tokens(posixpath.commonprefix([prompt, owner.last_prompt]))
        owner.last_prompt = prompt
        if owner.spared == "usage":
            counts["prompt_tokens_details"] = {"cached_tokens": had}
        return {"timings": {"cache_n": had, "prompt_n": 1}} if owner.spared == "timings" else {}

    def _events(self, body: dict[str, Any], answer: Answer, text: str, reason: str) -> Iterator[bytes]:
        yield _delta({"role": "assistant", "content": None})
        said = [("reasoning_content", piece) for piece in pieces(answer.thinking, answer.piece_chars)]
        said += [("content", piece) for piece in pieces(text, answer.piece_chars)]
        for number, (kind, piece) in enumerate(said[: stop_after(answer, len(said))]):
            first = number == 0 or said[number - 1][0] != kind
            found = first_choice(piece, answer.likely if kind == "content" else ())
            yield _delta({kind: piece}, logprobs=found if first and self._wants_logprobs(body) else None)
        if answer.error:
            yield _event({"error": {"message": answer.error, "type": "server_error", "code": 500}})
        elif not answer.no_end and answer.close is None:
            yield _delta({}, finish=reason)

    def _worded(self, error: str) -> dict[str, Any]:
        return {"error": {"message": error, "type": "server_error", "param": None, "code": None}}

    def _wants_logprobs(self, body: dict[str, Any]) -> bool:
        return self._owner.logprobs and bool(body.get("logprobs"))

    def _begin(self) -> None:
        self._answering()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self.wfile.flush()


def shout_of(tokens: int) -> Note:
    """What makes a request of `SHOUT` of so many tokens, or of one less, by this server's count."""
    bare = count_tokens(SHOUT.system) + count_tokens(SHOUT.render(Note(text=""))) + FRAMING
    return Note(text="abcdefg " * ((tokens - bare) // 2))


def _need(body: dict[str, Any]) -> int:
    system, prompt = texts_of(body)
    return count_tokens(system) + count_tokens(prompt) + count_tokens(behind_gap(body)) + FRAMING


def _delta(delta: dict[str, Any], *, logprobs: list[Any] | None = None, finish: str | None = None) -> bytes:
    choice: dict[str, Any] = {"index": 0, "delta": delta, "finish_reason": finish}
    if logprobs is not None:
        choice["logprobs"] = {"content": logprobs}
    return _event({"object": "chat.completion.chunk", "choices": [choice]})


def _event(data: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(data, ensure_ascii=False).encode() + b"\n\n"
