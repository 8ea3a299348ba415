"""Models in the record: writes their calls, stores measurements of them, and learns from their calls how many tokens a text has."""

from clean_room_agent.artifacts.model_calls import AnswerReading, BiasKey, ModelCall, ProbedServer
from clean_room_agent.db.raw import calls
from clean_room_agent.db.raw.calls import get_call
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.rows import Connection
from clean_room_agent.llm.answers import Choice
from clean_room_agent.llm.probes import still_holds
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.llm.token_estimator import TokenEstimator, factor_of_calls
from clean_room_agent.orchestrator.spending import Meter

LEARNED_FROM = 300
"""The newest calls of a model that its factor is learned from."""


class RecordSink:
    """Writes model calls to the record, and counts them, except those that a resumed run made before."""

    def __init__(
        self,
        record: Record,
        meter: Meter,
        router: ModelRouter,
        *,
        asked: frozenset[int] = frozenset(),
        read: frozenset[int] = frozenset(),
    ) -> None:
        """`asked`: the calls that a resumed run made before; `read`: those of them whose answers were read."""
        self._record = record
        self._meter = meter
        self._router = router
        self._asked = asked
        self._read = read

    def record(self, call: ModelCall) -> int:
        """Commit the call, and return its id."""
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
        """Queue the reading; it is committed before anything that is written later."""
        if call_id in self._read:
            return
        row = calls.ReadingRow(call_id=call_id, reading=reading, fault=fault, timestamp=self._record.now())
        self._record.post(calls.append_reading, row)


class RecordedProofs:
    """Keeps proofs in the record of the repository."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def newest(self, server: ProbedServer) -> str | None:
        """When the server last passed the probe; None if it never did."""
        row = self._record.write(calls.newest_proof, server)
        return None if row is None else row.timestamp

    def keep(self, server: ProbedServer, call_id: int) -> None:
        """Store the proof."""
        row = calls.WindowProofRow(server=server, call_id=call_id, timestamp=self._record.now())
        self._record.write(calls.append_proof, row)


class RecordedBiases:
    """Keeps measurements in the record of the repository."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def newest(self, key: BiasKey, now: str) -> ModelCall | None:
        """The newest measurement under this key; None if there is none, or it may have been of another model."""
        row = self._record.write(calls.newest_bias, key)
        if row is None or not still_holds(key.model_digest, row.timestamp, now):
            return None
        return self._record.write(get_call, row.call_id)

    def keep(self, key: BiasKey, call_id: int, choice: Choice) -> None:
        """Store the measurement."""
        row = calls.AnswerBiasRow(
            key=key, shares=choice.shares, call_id=call_id, timestamp=self._record.now()
        )
        self._record.write(calls.append_bias, row)


def estimators_for(
    record: Record, router: ModelRouter, *, task_id: str, measured_as: str, live: bool
) -> dict[str, TokenEstimator]:
    """The token estimators of a command, by model, which are stored for `task_id`, if there is one. They are those of
    the task `measured_as`, or of an earlier run of `task_id`, if recorded; otherwise, if a server answers (`live`), those
    that the models' calls needed.
    """
    noted = record.write(read_estimators, measured_as or task_id)
    estimators = noted or {}
    if not noted and live and not measured_as:
        for tag in router.tags():
            factor = factor_of_calls(record.write(calls.list_needed_factors, tag, limit=LEARNED_FROM))
            if factor is not None:
                estimators[tag] = TokenEstimator(factor=factor)
    if task_id and (measured_as or not noted):
        rows = tuple(
            calls.TaskEstimatorRow(
                task_id=task_id,
                model=tag,
                start_factor=estimators.get(tag, router.estimator(tag)).factor,
                timestamp=record.now(),
            )
            for tag in router.tags()
        )
        record.write(calls.append_task_estimators, rows)
    return estimators


def read_estimators(conn: Connection, task_id: str) -> dict[str, TokenEstimator]:
    """The estimators that the task used, by model; empty if none are stored."""
    return {
        row.model: TokenEstimator(factor=row.start_factor)
        for row in calls.list_task_estimators(conn, task_id)
    }
