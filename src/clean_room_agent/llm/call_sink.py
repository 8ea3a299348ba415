"""Where every model call goes before anybody reads its answer. The llm package knows no database."""

from dataclasses import dataclass
from typing import Literal, Protocol

from clean_room_agent.artifacts.tasks import Role

Reading = Literal["parsed", "repaired", "unreadable"]
"""How an answer was read; `repaired`: it parsed, and it answered a request that showed an earlier answer's fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """One request to a model server and what came back, exactly."""

    pass_id: str
    call_type: str
    """The prompt's name."""
    stage_name: str
    role: Role
    item: str
    attempt: int
    """0-based among the calls of one pass, prompt and item; retries and repairs count."""
    model: str
    model_digest: str
    """The server's digest of the model's files; "" where it gives none."""
    provider: str
    system_prompt: str
    prompt: str
    prompt_hash: str
    request_body: str
    """The JSON text as it was sent."""
    response: str
    """The answer, or as much of it as came."""
    thinking: str
    logprobs: str
    """JSON text of the token probabilities, "" where none were given."""
    finish: str
    """`stop`, `length`, `repeated`, `copied`, or `error:<class>`."""
    error: str
    """The error's message; "" without one."""
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    """Of the prompt's, those that the server had computed for an earlier request; None where it does not tell."""
    estimated_tokens: int
    """Of the whole request, without the answer."""
    latency_ms: int
    timestamp: str
    """When the request was sent, UTC ISO 8601."""
    replayed_from: int | None
    """The recorded call that gave the answer, in a replay."""


class CallSink(Protocol):
    """Keeps calls."""

    def record(self, call: CallRecord) -> int:
        """The new call's id; the call is durable on return."""

    def reading(self, call_id: int, reading: Reading, fault: str) -> None:
        """Notes how the call's answer was read, durably no later than the next call is recorded.

        `fault`: why the answer was unreadable, or what of a readable one was left out; "" for neither.
        """
