"""Keeps in the record what the model client measures: calls and their readings, window proofs, answer biases."""

from clean_room_agent.artifacts.model_calls import AnswerReading, ModelCall
from clean_room_agent.artifacts.names import task_of
from clean_room_agent.db.raw import calls, model_measurements
from clean_room_agent.db.raw.calls import copying_models, get_call
from clean_room_agent.db.raw.record import Record
from clean_room_agent.llm.answers import Choice
from clean_room_agent.llm.bias import BiasKey
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.llm.window_probe import ProbedServer, still_holds
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


class RecordedProofs:
    """Keeps proofs in the record of the repository."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def newest(self, server: ProbedServer) -> str | None:
        """When the server was last proven; None where it never was."""
        row = self._record.write(
            model_measurements.newest_proof,
            provider=server.provider,
            base_url=server.base_url,
            model=server.model,
            model_digest=server.model_digest,
            window=server.window,
        )
        return None if row is None else row.timestamp

    def keep(self, server: ProbedServer, call_id: int) -> None:
        """Store the proof."""
        row = model_measurements.WindowProofRow(
            provider=server.provider,
            base_url=server.base_url,
            model=server.model,
            model_digest=server.model_digest,
            window=server.window,
            call_id=call_id,
            timestamp=self._record.now(),
        )
        self._record.write(model_measurements.append_proof, row)


class RecordedBiases:
    """Keeps measurements in the record of the repository."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def newest(self, key: BiasKey, now: str) -> ModelCall | None:
        """The call by which it was last key; None where it never was, or by what may have been another model."""
        row = self._record.write(
            model_measurements.newest_bias,
            base_url=key.base_url,
            model=key.model,
            model_digest=key.model_digest,
            prompt=key.prompt,
            prompt_hash=key.prompt_hash,
        )
        if row is None or not still_holds(row.model_digest, row.timestamp, now):
            return None
        return self._record.write(get_call, row.call_id)

    def keep(self, key: BiasKey, call_id: int, choice: Choice) -> None:
        """Store the measurement."""
        row = model_measurements.AnswerBiasRow(
            base_url=key.base_url,
            model=key.model,
            model_digest=key.model_digest,
            prompt=key.prompt,
            prompt_hash=key.prompt_hash,
            shares=choice.shares,
            call_id=call_id,
            timestamp=self._record.now(),
        )
        self._record.write(model_measurements.append_bias, row)


class RecordedCopies:
    """Knows from the record of the repository."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def copiers(self, pass_id: str) -> tuple[str, ...]:
        """The tags of the models that copied an example in other passes of this pass's task."""
        return self._record.write(copying_models, task_of(pass_id), beside=pass_id)
