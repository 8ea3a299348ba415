"""Writes model calls to the record for the model client, which knows no database."""

from clean_room_agent.artifacts.model_calls import AnswerReading, ModelCall
from clean_room_agent.db.raw import calls
from clean_room_agent.db.raw.record import Record
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.orchestrator.budget import Meter


class RecordSink:
    """Writes model calls to the record, and counts them; calls that a resumed run made before are there already."""

    def __init__(
        self,
        record: Record,
        meter: Meter,
        router: ModelRouter,
        *,
        asked: frozenset[int] = frozenset(),
        read: frozenset[int] = frozenset(),
    ) -> None:
        """`asked`: the calls that a resumed run made before; `read`: those of them that were read, too."""
        self._record = record
        self._meter = meter
        self._router = router
        self._asked = asked
        self._read = read

    def record(self, call: ModelCall) -> int:
        """The call is committed; its id."""
        if call.ending.replayed_from is not None and call.ending.replayed_from in self._asked:
            return call.ending.replayed_from
        # A refused or broken call has no count of its own, and the probe is meant not to fit.
        answered = not call.ending.error
        self._meter.add(
            prompt_tokens=(call.cost.prompt_tokens or call.cost.estimated_tokens) if answered else 0,
            completion_tokens=call.cost.completion_tokens or 0,
            latency_ms=call.cost.latency_ms,
            window=self._router.window(call.model.role).context if answered else 0,
        )
        return self._record.write(calls.append_call, call)

    def reading(self, call_id: int, reading: AnswerReading, fault: str) -> None:
        """The reading is queued; what is written later is committed after it."""
        if call_id in self._read:
            return
        row = calls.ReadingRow(call_id=call_id, reading=reading, fault=fault, timestamp=self._record.now())
        self._record.post(calls.append_reading, row)
