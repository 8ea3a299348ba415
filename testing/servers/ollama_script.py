"""What the stand-in model server is told to answer, what it tells the answerer, and the stream that comes of it."""

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Literal

from msgspec import Struct, structs

from clean_room_agent.llm.filling import MADE_UP_GAPS
from clean_room_agent.llm.prompt import INSTRUCTIONS

BUSY = "server busy, please try again.  maximum pending requests exceeded"
CREATED = "2026-01-01T00:00:00Z"

FRAMING = 12
"""Tokens of a request beside its texts."""

Overflow = Literal["plain", "json", "silent"]
"""How a server takes a prompt that is too long: two ways to refuse it, or it cuts it."""
Fills = Literal["", "rightly", "wrongly"]
"""Whether a server fills gaps, and how the made-up ones that are to show it; what other gaps get is the script's business."""
Close = Literal["before_headers", "before_token", "in_answer", "in_line"]

TOKEN = re.compile(r"[A-Za-z_]{1,6}|\d|[^\sA-Za-z_\d]|\n+")


def count_tokens(text: str) -> int:
    """Tokens by this server's own, simple tokeniser."""
    return len(TOKEN.findall(text))


class ChatCall(Struct, frozen=True, kw_only=True):
    """What the model is asked, as it reads it."""

    number: int
    """0-based among the calls that reached the model."""
    model: str
    system: str
    prompt: str
    schema: dict[str, Any] | None
    options: dict[str, Any]
    body: dict[str, Any]
    """The whole request, as it was sent."""
    gap: tuple[str, str] | None = None
    """What is before and behind the gap that is to be filled; `prompt` is then the former."""

    @property
    def title(self) -> str:
        """What the prompt's heading says is to be done; "" where it has none."""
        _, found, below = f"\n{self.prompt}".rpartition(f"\n{INSTRUCTIONS}")
        return below.partition("\n")[0] if found else ""


class Answer(Struct, frozen=True, kw_only=True):
    """What the model says, and what goes wrong on the way."""

    text: str = ""
    thinking: str = ""
    likely: tuple[tuple[str, float], ...] = ()
    """Probabilities (not logarithms) at the first token; made up from the first word where empty."""
    done_reason: str = "stop"
    status: int = 200
    """Another one: the request is refused with `error`."""
    error: str = ""
    """With status 200, a line in the stream after `error_after` pieces."""
    error_after: int = 1
    raw_body: str | None = None
    """Sent in place of all else."""
    peers: int = 0
    """Not before so many requests have been under way at once."""
    load_seconds: float = 0.0
    """Before the headers, which come with the first token."""
    pause_seconds: float = 0.0
    """Before each piece but the first."""
    piece_chars: int = 24
    """Characters a line of the stream."""
    chunk_bytes: int = 0
    """Send the stream in chunks of so many bytes, wherever that cuts; 0: a line a chunk."""
    no_end: bool = False
    """The stream ends cleanly without its last line."""
    close: Close | None = None
    """The connection breaks."""
    cached: bool = False
    """The prompt stood in the cache: its count is 0, and so absent."""


Answerer = Callable[[ChatCall], Answer | str]


def gap_of(body: dict[str, Any]) -> tuple[str, str] | None:
    """The texts around the gap that a request asks to fill, in any protocol; None if it is another request."""
    if "input_prefix" in body:
        return body["input_prefix"], body["input_suffix"]
    return (body["prompt"], body["suffix"]) if "suffix" in body else None


def texts_of(body: dict[str, Any]) -> tuple[str, str]:
    """The system text and the prompt of a request; of one to fill a gap, nothing and what is before the gap."""
    gap = gap_of(body)
    if gap is not None:
        return "", gap[0]
    texts = {message["role"]: message["content"] for message in body["messages"]}
    return texts.get("system", ""), texts["user"]


def behind_gap(body: dict[str, Any]) -> str:
    """What is behind the gap of a request; "" if it asks for none."""
    gap = gap_of(body)
    return "" if gap is None else gap[1]


def probe_answer(gap: tuple[str, str], fills: Fills) -> str | None:
    """What a server says to a made-up gap; None for another gap."""
    for known in MADE_UP_GAPS:
        if gap == (known.before, known.after):
            return known.right[0] if fills == "rightly" else "pass"
    return None


def stopped(answer: Answer, stops: list[str]) -> Answer:
    """The answer up to the first of the stops."""
    text = answer.text
    for stop in stops:
        text = text.partition(stop)[0]
    return structs.replace(answer, text=text)


def busy() -> Answer:
    """The queue is full."""
    return Answer(status=503, error=BUSY)


def stream_lines(
    body: dict[str, Any], answer: Answer, need: int, *, logprobs: bool
) -> Iterator[dict[str, Any]]:
    """The stream's lines. An answer longer than `num_predict` ends there, for length."""
    text, reason = limited(answer, body.get("options", {}).get("num_predict", -1))
    said = [("thinking", piece) for piece in pieces(answer.thinking, answer.piece_chars)]
    said += [("content", piece) for piece in pieces(text, answer.piece_chars)]
    stop = stop_after(answer, len(said))
    base = {"model": body["model"], "created_at": CREATED}
    for number, (kind, piece) in enumerate(said[:stop]):
        message = {"role": "assistant", "content": ""} | {kind: piece}
        line = (
            base | ({"message": message} if gap_of(body) is None else {"response": piece}) | {"done": False}
        )
        if logprobs and body.get("logprobs") and (number == 0 or said[number - 1][0] != kind):
            line["logprobs"] = first_choice(piece, answer.likely if kind == "content" else ())
        yield line
    if answer.error:
        yield {"error": answer.error}
    elif not answer.no_end and answer.close is None:
        counts = {"prompt_eval_count": 0 if answer.cached else need, "eval_count": count_tokens(text)}
        times = {"total_duration": 2_000_000, "prompt_eval_duration": 1_000_000, "load_duration": 0}
        figures = {name: value for name, value in (counts | times).items() if value}
        message = {"role": "assistant", "content": ""}
        last = {"message": message} if gap_of(body) is None else {"response": ""}
        yield base | last | {"done": True, "done_reason": reason} | figures


def limited(answer: Answer, limit: int) -> tuple[str, str]:
    """The answer's text and the reason of its end, where it may have so many tokens; any number, below 0."""
    found = list(TOKEN.finditer(answer.text))
    if 0 <= limit < len(found):
        return (answer.text[: found[limit - 1].end()] if limit else ""), "length"
    return answer.text, answer.done_reason


def stop_after(answer: Answer, count: int) -> int:
    """How many of the answer's pieces are sent before it goes wrong."""
    if answer.error:
        return answer.error_after
    if answer.close is not None:
        return max(count // 2, 1)
    return count


def pieces(text: str, size: int) -> list[str]:
    """The text in pieces of so many characters."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def stream_chunks(lines: Iterator[dict[str, Any]], answer: Answer) -> Iterator[bytes]:
    """The lines as they are sent."""
    return chunks_of([json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines], answer)


def chunks_of(encoded: list[bytes], answer: Answer) -> Iterator[bytes]:
    """What is to be sent, in the chunks that the answer asks for."""
    if answer.close == "in_line" and encoded:
        encoded[-1] = encoded[-1][: len(encoded[-1]) // 2]
    if not answer.chunk_bytes:
        yield from encoded
        return
    whole = b"".join(encoded)
    for start in range(0, len(whole), answer.chunk_bytes):
        yield whole[start : start + answer.chunk_bytes]


def first_choice(text: str, likely: tuple[tuple[str, float], ...]) -> list[dict[str, Any]]:
    """The first token with what might have stood in its place."""
    first = re.match(r"\s*(?:[A-Za-z]+|\S)", text)
    if first is None:
        return []
    word = first[0]
    if not likely:
        other = {"yes": "No", "no": "Yes"}.get(word.strip().lower(), "the")
        likely = ((word, 0.9), (other, 0.08))
    top = [{"token": token, "logprob": math.log(share)} for token, share in likely]
    return [{"token": word, "logprob": top[0]["logprob"], "top_logprobs": top}]


def overflow_message(form: Overflow, need: int, window: int) -> str:
    """What a server says that refuses a prompt of `need` tokens."""
    if form == "plain":
        return "the input length exceeds the context length"
    inner = {
        "code": 400,
        "message": "the request exceeds the available context size, try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": need,
        "n_ctx": window,
    }
    return json.dumps({"error": inner})


def cut_prompt(system: str, prompt: str, window: int) -> tuple[str, str]:
    """The system text goes first, then the middle of the prompt, until the rest fits the window."""
    tokens = list(TOKEN.finditer(prompt))
    package = max(window - FRAMING, 0)
    if len(tokens) <= package:
        return "", prompt
    head = tokens[package // 2].start()
    tail = tokens[len(tokens) - (package - package // 2)].start()
    return "", prompt[:head] + prompt[tail:]
