"""Models in the record: writes their calls, stores measurements of them, and fits token estimators to their calls."""

from collections.abc import Iterable, Mapping

from clean_room_agent.artifacts.model_calls import AnswerReading, ModelCall
from clean_room_agent.artifacts.names import task_of
from clean_room_agent.db.raw import calls
from clean_room_agent.db.raw.calls import copying_models, get_call
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.rows import Connection
from clean_room_agent.llm.answers import Choice
from clean_room_agent.llm.probes import BiasKey, ProbedServer, still_holds
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.llm.token_estimator import (
    FULL_PAIRS,
    KINDS,
    LEAST_PAIRS,
    FittedEstimator,
    InitialEstimator,
    TokenEstimator,
)
from clean_room_agent.orchestrator.spending import Meter

STEP = 25
"""New prompts after which a calibration is repeated, until it is based on `FULL_PAIRS`."""
LATER_STEP = 100
"""And afterwards."""


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
        row = self._record.write(
            calls.newest_proof,
            provider=server.provider,
            base_url=server.base_url,
            model=server.model,
            model_digest=server.model_digest,
            window=server.window,
        )
        return None if row is None else row.timestamp

    def keep(self, server: ProbedServer, call_id: int) -> None:
        """Store the proof."""
        row = calls.WindowProofRow(
            provider=server.provider,
            base_url=server.base_url,
            model=server.model,
            model_digest=server.model_digest,
            window=server.window,
            call_id=call_id,
            timestamp=self._record.now(),
        )
        self._record.write(calls.append_proof, row)


class RecordedBiases:
    """Keeps measurements in the record of the repository."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def newest(self, key: BiasKey, now: str) -> ModelCall | None:
        """The newest measurement under this key; None if there is none, or it may have been of another model."""
        row = self._record.write(
            calls.newest_bias,
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
        row = calls.AnswerBiasRow(
            base_url=key.base_url,
            model=key.model,
            model_digest=key.model_digest,
            prompt=key.prompt,
            prompt_hash=key.prompt_hash,
            shares=choice.shares,
            call_id=call_id,
            timestamp=self._record.now(),
        )
        self._record.write(calls.append_bias, row)


class RecordedCopies:
    """Looks models up in the record of the repository."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def copiers(self, pass_id: str) -> tuple[str, ...]:
        """The tags of the models that copied an example in other passes of this pass's task."""
        return self._record.write(copying_models, task_of(pass_id), beside=pass_id)


def estimators_for(
    record: Record, router: ModelRouter, *, task_id: str, measured_as: str, live: bool
) -> dict[str, TokenEstimator]:
    """The token estimators of a command, by model, which are stored for `task_id`, if there is one. They are those of
    the task `measured_as`, or of an earlier run of `task_id`, if recorded; otherwise those learned from all calls, if a
    server answers (`live`).
    """
    noted = record.write(read_estimators, measured_as or task_id)
    estimators: dict[str, TokenEstimator] = dict(noted or {})
    if noted is None and live and not measured_as:
        estimators.update(learned_estimators(record, router.tags()))
    if task_id and (measured_as or noted is None):
        note_estimators(record, task_id, router.tags(), estimators, router.models.token_factor)
    return estimators


def learned_estimators(record: Record, tags: Iterable[str]) -> dict[str, FittedEstimator]:
    """The newest calibration of each model, without models that have none. It is renewed if enough calls were made
    since the last one, which takes about a second per model.
    """
    found = {}
    for tag in tags:
        known = record.write(calls.newest_calibration, tag)
        if _is_due(record, tag, known):
            known = _calibrate(record, tag) or known
        if known is not None and (estimator := _estimator(known)) is not None:
            found[tag] = estimator
    return found


def read_estimators(conn: Connection, task_id: str) -> dict[str, TokenEstimator] | None:
    """The estimators that the task used, by model; None if none are stored."""
    rows = calls.list_task_estimators(conn, task_id)
    found: dict[str, TokenEstimator] = {}
    for row in rows:
        known = row.calibration_id and calls.get_calibration(conn, row.calibration_id)
        found[row.model] = (known and _estimator(known)) or InitialEstimator(factor=row.start_factor)
    return found if rows else None


def note_estimators(
    record: Record,
    task_id: str,
    tags: Iterable[str],
    estimators: Mapping[str, TokenEstimator],
    start_factor: float,
) -> None:
    """Record the estimators that the task uses."""
    ids = {
        tag: estimator.calibration_id
        for tag, estimator in estimators.items()
        if isinstance(estimator, FittedEstimator)
    }
    rows = tuple(
        calls.TaskEstimatorRow(
            task_id=task_id,
            model=tag,
            calibration_id=ids.get(tag),
            start_factor=start_factor,
            timestamp=record.now(),
        )
        for tag in tags
    )
    record.write(calls.append_task_estimators, rows)


def _is_due(record: Record, tag: str, known: calls.CalibrationRow | None) -> bool:
    after = known.newest_call_id if known else 0
    wanted = LEAST_PAIRS if known is None else STEP if known.pairs < FULL_PAIRS else LATER_STEP
    return record.write(calls.count_pairs_since, tag, after) >= wanted


def _calibrate(record: Record, tag: str) -> calls.CalibrationRow | None:
    from clean_room_agent.llm.calibration import MOST_PAIRS, Pair, calibrate

    logged = record.write(calls.list_pairs, tag, limit=MOST_PAIRS)
    fitted = calibrate(
        [Pair(system=pair.system_prompt, prompt=pair.prompt, counted=pair.prompt_tokens) for pair in logged]
    )
    if fitted is None:
        return None
    row = calls.CalibrationRow(
        model=tag,
        model_digest=logged[-1].model_digest,
        pairs=fitted.pairs,
        newest_call_id=logged[-1].call_id,
        margin=fitted.margin,
        weights=fitted.weights,
        words=fitted.words,
        timestamp=record.now(),
    )
    row_id = record.write(calls.append_calibration, row)
    return record.write(calls.get_calibration, row_id)


def _estimator(row: calls.CalibrationRow) -> FittedEstimator | None:
    """The row as an estimator; None if another version of the program, with other kinds of pieces, made it."""
    if len(row.weights) != len(KINDS):
        return None
    return FittedEstimator(
        weights=row.weights, words=row.words, margin=row.margin, pairs=row.pairs, calibration_id=row.id
    )
