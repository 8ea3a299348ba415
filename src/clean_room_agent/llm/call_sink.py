"""Where every model call goes before anybody reads its answer. The llm package knows no database."""

from typing import Protocol

from clean_room_agent.artifacts.model_calls import AnswerReading, ModelCall


class CallSink(Protocol):
    """Keeps calls."""

    def record(self, call: ModelCall) -> int:
        """The new call's id; the call is durable on return."""

    def reading(self, call_id: int, reading: AnswerReading, fault: str) -> None:
        """Notes how the call's answer was read, durably no later than the next call is recorded.

        `fault`: why the answer was unreadable, or what of a readable one was left out; "" for neither.
        """
