"""A call sink that keeps what it is given in lists."""

import threading

from clean_room_agent.artifacts.model_calls import AnswerReading, ModelCall
from clean_room_agent.llm.probes import PROBE_NAME


class MemorySink:
    """`calls[i]` is the call with id `i + 1`; `readings` holds (call id, reading, fault) in order of arrival."""

    def __init__(self) -> None:
        self.calls: list[ModelCall] = []
        self.readings: list[tuple[int, AnswerReading, str]] = []
        self._lock = threading.Lock()

    def record(self, call: ModelCall) -> int:
        with self._lock:
            self.calls.append(call)
            return len(self.calls)

    def asked(self) -> list[ModelCall]:
        """The calls that some pass asked for: all but the probes of the server's window."""
        return [call for call in self.calls if call.site.call_type != PROBE_NAME]

    def reading(self, call_id: int, reading: AnswerReading, fault: str) -> None:
        with self._lock:
            self.readings.append((call_id, reading, fault))
