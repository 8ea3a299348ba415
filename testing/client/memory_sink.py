"""A call sink that keeps what it is given in lists."""

import threading

from clean_room_agent.llm.call_sink import CallRecord, Reading
from clean_room_agent.llm.window_probe import PROBE_NAME


class MemorySink:
    """`calls[i]` is the call with id `i + 1`; `readings` holds (call id, reading, fault) in order of arrival."""

    def __init__(self) -> None:
        self.calls: list[CallRecord] = []
        self.readings: list[tuple[int, Reading, str]] = []
        self._lock = threading.Lock()

    def record(self, call: CallRecord) -> int:
        with self._lock:
            self.calls.append(call)
            return len(self.calls)

    def asked(self) -> list[CallRecord]:
        """The calls that some pass asked for: all but the probes of the server's window."""
        return [call for call in self.calls if call.call_type != PROBE_NAME]

    def reading(self, call_id: int, reading: Reading, fault: str) -> None:
        with self._lock:
            self.readings.append((call_id, reading, fault))
