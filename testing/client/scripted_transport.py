"""A transport in memory: answers come from a list or a function, no server and no waiting."""

import threading
from collections.abc import Callable, Iterable

from clean_room_agent.llm.token_estimator import estimate
from clean_room_agent.llm.transport import ChatRequest, RawAnswer

Scripted = str | RawAnswer


class ScriptedTransport:
    """Answers with `script(request)`, or with the next of a list; keeps every request."""

    provider = "scripted"
    live = False

    def __init__(self, script: Callable[[ChatRequest], Scripted] | Iterable[Scripted]) -> None:
        self.requests: list[ChatRequest] = []
        self._lock = threading.Lock()
        if callable(script):
            self._answer = script
        else:
            answers = iter(script)
            self._answer = lambda _: next(answers)

    def send(self, request: ChatRequest) -> RawAnswer:
        with self._lock:
            self.requests.append(request)
            answer = self._answer(request)
        if isinstance(answer, RawAnswer):
            return answer
        return RawAnswer(
            request_body="{}",
            text=answer,
            prompt_tokens=estimate(request.system + request.prompt, 1.0),
            completion_tokens=estimate(answer, 1.0),
        )

    def window(self, tag: str) -> int | None:
        return None

    def count(self, tag: str, system: str, prompt: str) -> int | None:
        return None

    def digest(self, tag: str) -> str | None:
        return None
