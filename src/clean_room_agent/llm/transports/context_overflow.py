"""Reading how servers say that a prompt is too long: each one's own words, as figures."""

import json
import re
from typing import Any

from clean_room_agent.llm.transport import Refusal

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


def read_refusal(message: str) -> Refusal | None:
    """What a server's error says of a prompt that is too long; None where it speaks of something else."""
    if "exceed_context_size" in message or '"n_ctx"' in message:
        figures = _embedded(message)
        return Refusal(
            prompt_tokens=_count(figures.get("n_prompt_tokens")), window=_count(figures.get("n_ctx"))
        )
    for wording in _WORDINGS:
        found = wording.search(message)
        if found is not None:
            named = found.groupdict()
            return Refusal(prompt_tokens=_number(named.get("prompt")), window=_number(named.get("window")))
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


def _number(digits: str | None) -> int | None:
    return None if digits is None or len(digits) > MAX_DIGITS else int(digits)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and 0 < value < 10**MAX_DIGITS else None
