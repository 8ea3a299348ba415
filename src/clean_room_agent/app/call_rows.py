"""Model calls as `llm` knows them and the rows that `db` keeps, each made from the other: neither knows the other."""

from clean_room_agent.artifacts.ids import relative_pass
from clean_room_agent.db.raw import calls
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.rows import Connection
from clean_room_agent.llm.call_sink import CallRecord, Reading
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.llm.transport import CallIdentity
from clean_room_agent.llm.transports.replay import RecordedCall
from clean_room_agent.orchestrator.usage_meter import Meter


class RecordSink:
    """Hands model calls to the record, and counts them; what a resumed run asked before stands there already."""

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

    def record(self, call: CallRecord) -> int:
        """The call is committed; its id."""
        if call.replayed_from is not None and call.replayed_from in self._asked:
            return call.replayed_from
        # A refused or broken call has no count of its own, and the probe is meant not to fit.
        answered = not call.error
        self._meter.add(
            prompt_tokens=(call.prompt_tokens or call.estimated_tokens) if answered else 0,
            completion_tokens=call.completion_tokens or 0,
            latency_ms=call.latency_ms,
            window=self._router.window(call.role).context if answered else 0,
        )
        return self._record.write(calls.append_call, call_row(call))

    def reading(self, call_id: int, reading: Reading, fault: str) -> None:
        """The reading is queued; what is written later is committed after it."""
        if call_id in self._read:
            return
        row = calls.ReadingRow(call_id=call_id, reading=reading, fault=fault, timestamp=self._record.now())
        self._record.post(calls.append_reading, row)


def call_row(call: CallRecord) -> calls.CallRow:
    """A call as a row of the record."""
    return calls.CallRow(
        task_id=call.pass_id,
        call_type=call.call_type,
        stage_name=call.stage_name,
        model=call.model,
        prompt=call.prompt,
        response=call.response,
        prompt_tokens=call.prompt_tokens,
        completion_tokens=call.completion_tokens,
        latency_ms=call.latency_ms,
        timestamp=call.timestamp,
        system_prompt=call.system_prompt,
        request_body=call.request_body,
        provider=call.provider,
        model_digest=call.model_digest,
        finish=call.finish,
        role=call.role,
        item=call.item,
        attempt=call.attempt,
        prompt_hash=call.prompt_hash,
        estimated_tokens=call.estimated_tokens,
        thinking=call.thinking,
        logprobs=call.logprobs,
        error=call.error,
        replayed_from=call.replayed_from,
        cached_tokens=call.cached_tokens,
    )


def recorded_calls(conn: Connection, task_id: str) -> tuple[RecordedCall, ...]:
    """The calls of a task as a replay wants them, in the order in which they were recorded."""
    return tuple(recorded_call(row) for row in calls.list_calls(conn, task_id))


def recorded_call(row: calls.CallRow) -> RecordedCall:
    """A row of the record as a replay wants it."""
    return RecordedCall(
        call_id=row.id,
        identity=CallIdentity(
            pass_id=relative_pass(row.task_id), prompt=row.call_type, item=row.item, attempt=row.attempt
        ),
        system_prompt=row.system_prompt,
        prompt=row.prompt,
        prompt_hash=row.prompt_hash,
        request_body=row.request_body,
        response=row.response,
        thinking=row.thinking,
        logprobs=row.logprobs,
        model_digest=row.model_digest,
        finish=row.finish,
        error=row.error,
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
        cached_tokens=row.cached_tokens,
        model=row.model,
    )
