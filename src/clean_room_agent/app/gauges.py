"""Gauges for a command's models: learned from the record, noted with the task, the same again in its replay."""

from collections.abc import Iterable, Mapping

from clean_room_agent.db.raw import calibrations
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.rows import Connection
from clean_room_agent.llm.calibration import FULL_PAIRS, LEAST_PAIRS, MOST_PAIRS, Pair, calibrate
from clean_room_agent.llm.gauge import KINDS, FittedGauge, Gauge, StartGauge
from clean_room_agent.llm.router import ModelRouter

STEP = 25
"""New prompts after which a calibration is made again while it has not seen `FULL_PAIRS`."""
LATER_STEP = 100
"""And afterwards."""


def gauges_for(
    record: Record, router: ModelRouter, *, task_id: str, measured_as: str, live: bool
) -> dict[str, Gauge]:
    """What a command measures prompts with, by model; the record says so for `task_id`, where there is one.

    The gauges of the task `measured_as`, or of an earlier run of `task_id`, where the record knows of it; else what
    is learned from all calls, where a server answers (`live`).
    """
    noted = record.write(read_gauges, measured_as or task_id)
    gauges: dict[str, Gauge] = dict(noted or {})
    if noted is None and live and not measured_as:
        gauges.update(learned_gauges(record, router.tags()))
    if task_id and (measured_as or noted is None):
        note_gauges(record, task_id, router.tags(), gauges, router.models.token_factor)
    return gauges


def learned_gauges(record: Record, tags: Iterable[str]) -> dict[str, FittedGauge]:
    """The newest calibration of each model, made now where enough calls came after the last; models without are left out.

    About a second for a model where one is due.
    """
    found = {}
    for tag in tags:
        known = record.write(calibrations.newest_calibration, tag)
        if _is_due(record, tag, known):
            known = _calibrate(record, tag) or known
        if known is not None and (gauge := _gauge(known)) is not None:
            found[tag] = gauge
    return found


def read_gauges(conn: Connection, task_id: str) -> dict[str, Gauge] | None:
    """What the task was measured with, by model; None where nothing is noted of it."""
    rows = calibrations.list_task_gauges(conn, task_id)
    found: dict[str, Gauge] = {}
    for row in rows:
        known = row.calibration_id and calibrations.get_calibration(conn, row.calibration_id)
        found[row.model] = (known and _gauge(known)) or StartGauge(factor=row.start_factor)
    return found if rows else None


def note_gauges(
    record: Record, task_id: str, tags: Iterable[str], gauges: Mapping[str, Gauge], start_factor: float
) -> None:
    """The record says what the task is measured with."""
    ids = {tag: gauge.calibration_id for tag, gauge in gauges.items() if isinstance(gauge, FittedGauge)}
    rows = tuple(
        calibrations.TaskGaugeRow(
            task_id=task_id,
            model=tag,
            calibration_id=ids.get(tag),
            start_factor=start_factor,
            timestamp=record.now(),
        )
        for tag in tags
    )
    record.write(calibrations.append_task_gauges, rows)


def _is_due(record: Record, tag: str, known: calibrations.CalibrationRow | None) -> bool:
    after = known.newest_call_id if known else 0
    wanted = LEAST_PAIRS if known is None else STEP if known.pairs < FULL_PAIRS else LATER_STEP
    return record.write(calibrations.count_pairs_since, tag, after) >= wanted


def _calibrate(record: Record, tag: str) -> calibrations.CalibrationRow | None:
    logged = record.write(calibrations.list_pairs, tag, limit=MOST_PAIRS)
    fitted = calibrate(
        [Pair(system=pair.system_prompt, prompt=pair.prompt, counted=pair.prompt_tokens) for pair in logged]
    )
    if fitted is None:
        return None
    row = calibrations.CalibrationRow(
        model=tag,
        model_digest=logged[-1].model_digest,
        pairs=fitted.pairs,
        newest_call_id=logged[-1].call_id,
        margin=fitted.margin,
        weights=fitted.weights,
        words=fitted.words,
        timestamp=record.now(),
    )
    row_id = record.write(calibrations.append_calibration, row)
    return record.write(calibrations.get_calibration, row_id)


def _gauge(row: calibrations.CalibrationRow) -> FittedGauge | None:
    """The row as a gauge; None where it was made by a program that sorted pieces into other kinds."""
    if len(row.weights) != len(KINDS):
        return None
    return FittedGauge(
        weights=row.weights, words=row.words, margin=row.margin, pairs=row.pairs, calibration_id=row.id
    )
