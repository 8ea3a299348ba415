"""Recorded model calls, made from what a test wants to say of them; all else is filled in."""

from typing import Any

from clean_room_agent.artifacts.model_calls import (
    CallAnswer,
    CallCost,
    CalledModel,
    CallEnding,
    CallRequest,
    CallSite,
    ModelCall,
)

PARTS: tuple[tuple[str, type, dict[str, Any]], ...] = (
    (
        "site",
        CallSite,
        {"pass_id": "task", "stage_name": "", "call_type": "implement", "item": "", "attempt": 0},
    ),
    ("model", CalledModel, {"tag": "", "role": "coding", "provider": "ollama", "digest": ""}),
    (
        "request",
        CallRequest,
        {"system_prompt": "", "prompt": "", "prompt_hash": "", "request_body": "{}", "spans": None},
    ),
    ("answer", CallAnswer, {"response": "", "thinking": "", "logprobs": ""}),
    ("ending", CallEnding, {"finish": "stop", "error": "", "replayed_from": None}),
    (
        "cost",
        CallCost,
        {
            "estimated_tokens": 0,
            "prompt_tokens": None,
            "completion_tokens": None,
            "cached_tokens": None,
            "latency_ms": 0,
            "timestamp": "2026-01-01T00:00:00Z",
        },
    ),
)


COLUMNS = {"task_id": "pass_id", "model": "tag", "model_digest": "digest"}
"""Of the record, where a field has another name."""


def model_call(call_id: int = 0, **columns: Any) -> ModelCall:
    """A call with these values, under the names of the record's columns."""
    said = {COLUMNS.get(name, name): value for name, value in columns.items()}
    parts = {
        name: kind(**{field: said.pop(field, value) for field, value in fields.items()})
        for name, kind, fields in PARTS
    }
    assert not said, f"no part of a call has: {', '.join(said)}"
    return ModelCall(id=call_id, **parts)
