"""A request as the model client sends it to a transport."""

from typing import Any

from clean_room_agent.artifacts.model_calls import CallIdentity
from clean_room_agent.llm.router import ModelConfig
from clean_room_agent.llm.transport import ChatRequest, Sampling

MODEL = ModelConfig(
    tag="coder:3b",
    role="coding",
    provider="ollama",
    window=4096,
    reserved=1024,
    temperature=0.0,
    max_tokens=None,
)


def chat_request(**fields: Any) -> ChatRequest:
    """A short question, with these fields in place of the usual ones."""
    given: dict[str, Any] = {
        "identity": CallIdentity(pass_id="p", prompt="colour", item="", attempt=0),
        "model": MODEL,
        "system": "Be brief.",
        "prompt": "# Say it\n\nNow.",
        "schema": None,
        "wants_logprobs": False,
        "max_tokens": 50,
        "sampling": Sampling(),
    }
    return ChatRequest(**(given | fields))
