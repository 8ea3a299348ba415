"""Token estimators for a command's models: fitted to the record, stored with the task, reused in its replay."""

from collections.abc import Iterable, Mapping

from clean_room_agent.db.raw import model_measurements
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.rows import Connection
from clean_room_agent.llm.calibration import FULL_PAIRS, LEAST_PAIRS, MOST_PAIRS, Pair, calibrate
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.llm.token_estimator import KINDS, FittedEstimator, InitialEstimator, TokenEstimator

STEP = 25
"""New prompts after which a calibration is made again while it has not seen `FULL_PAIRS`."""
LATER_STEP = 100
"""And afterwards."""


def estimators_for(
    record: Record, router: ModelRouter, *, task_id: str, measured_as: str, live: bool
) -> dict[str, TokenEstimator]:
    """The token estimators of a command, by model; stored for `task_id`, if there is one.

    The estimators of the task `measured_as`, or of an earlier run of `task_id`, where the record knows of it; else what
    is learned from all calls, where a server answers (`live`).
    """
    noted = record.write(read_estimators, measured_as or task_id)
    estimators: dict[str, TokenEstimator] = dict(noted or {})
    if noted is None and live and not measured_as:
        estimators.update(learned_estimators(record, router.tags()))
    if task_id and (measured_as or noted is None):
        note_estimators(record, task_id, router.tags(), estimators, router.models.token_factor)
    return estimators


def learned_estimators(record: Record, tags: Iterable[str]) -> dict[str, FittedEstimator]:
    """The newest calibration of each model, made now where enough calls came after the last; models without are left out.

    About a second for a model where one is due.
    """
    found = {}
    for tag in tags:
        known = record.write(model_measurements.newest_calibration, tag)
        if _is_due(record, tag, known):
            known = _calibrate(record, tag) or known
        if known is not None and (estimator := _estimator(known)) is not None:
            found[tag] = estimator
    return found


def read_estimators(conn: Connection, task_id: str) -> dict[str, TokenEstimator] | None:
    """The estimators that the task used, by model; None if none are stored."""
    rows = model_measurements.list_task_estimators(conn, task_id)
    found: dict[str, TokenEstimator] = {}
    for row in rows:
        known = row.calibration_id and model_measurements.get_calibration(conn, row.calibration_id)
        found[row.model] = (known and _estimator(known)) or InitialEstimator(factor=row.start_factor)
    return found if rows else None


def note_estimators(
    record: Record,
    task_id: str,
    tags: Iterable[str],
    estimators: Mapping[str, TokenEstimator],
    start_factor: float,
) -> None:
    """The record says what the task is measured with."""
    ids = {
        tag: estimator.calibration_id
        for tag, estimator in estimators.items()
        if isinstance(estimator, FittedEstimator)
    }
    rows = tuple(
        model_measurements.TaskEstimatorRow(
            task_id=task_id,
            model=tag,
            calibration_id=ids.get(tag),
            start_factor=start_factor,
            timestamp=record.now(),
        )
        for tag in tags
    )
    record.write(model_measurements.append_task_estimators, rows)


def _is_due(record: Record, tag: str, known: model_measurements.CalibrationRow | None) -> bool:
    after = known.newest_call_id if known else 0
    wanted = LEAST_PAIRS if known is None else STEP if known.pairs < FULL_PAIRS else LATER_STEP
    return record.write(model_measurements.count_pairs_since, tag, after) >= wanted


def _calibrate(record: Record, tag: str) -> model_measurements.CalibrationRow | None:
    logged = record.write(model_measurements.list_pairs, tag, limit=MOST_PAIRS)
    fitted = calibrate(
        [Pair(system=pair.system_prompt, prompt=pair.prompt, counted=pair.prompt_tokens) for pair in logged]
    )
    if fitted is None:
        return None
    row = model_measurements.CalibrationRow(
        model=tag,
        model_digest=logged[-1].model_digest,
        pairs=fitted.pairs,
        newest_call_id=logged[-1].call_id,
        margin=fitted.margin,
        weights=fitted.weights,
        words=fitted.words,
        timestamp=record.now(),
    )
    row_id = record.write(model_measurements.append_calibration, row)
    return record.write(model_measurements.get_calibration, row_id)


def _estimator(row: model_measurements.CalibrationRow) -> FittedEstimator | None:
    """The row as an estimator; None where it was made by a program that sorted pieces into other kinds."""
    if len(row.weights) != len(KINDS):
        return None
    return FittedEstimator(
        weights=row.weights, words=row.words, margin=row.margin, pairs=row.pairs, calibration_id=row.id
    )
