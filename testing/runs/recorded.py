"""What `raw.sqlite` holds of a run, as tests look at it."""

import contextlib
from pathlib import Path

from msgspec import Struct

from clean_room_agent.artifacts.model_calls import ModelCall
from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw.calls import ReadingRow, list_calls, list_readings
from clean_room_agent.db.raw.passes import (
    AttemptRow,
    RecoveryRow,
    RefinementRow,
    TaskRunRow,
    ValidationRow,
    list_attempts,
    list_recovery_decisions,
    list_refinements,
    list_task_runs,
    list_validations,
)
from clean_room_agent.db.raw.runs import (
    ORCHESTRATOR_RUNS,
    EventRow,
    OrchestratorRunRow,
    get_orchestrator_run,
    list_events,
    list_overviews,
)
from clean_room_agent.db.rows import Connection


class Recorded(Struct, frozen=True, kw_only=True):
    """What `raw.sqlite` holds of the newest run, through the readers that the program itself has."""

    run: OrchestratorRunRow | None
    calls: tuple[ModelCall, ...] = ()
    """Without the probes of the server's window."""
    probes: tuple[ModelCall, ...] = ()
    readings: tuple[ReadingRow, ...] = ()
    passes: tuple[TaskRunRow, ...] = ()
    attempts: tuple[AttemptRow, ...] = ()
    validations: tuple[ValidationRow, ...] = ()
    refinements: tuple[RefinementRow, ...] = ()
    recoveries: tuple[RecoveryRow, ...] = ()
    events: tuple[EventRow, ...] = ()

    @property
    def ending(self) -> tuple[str, str]:
        """(status, reason) of the run."""
        assert self.run is not None, "no run was recorded"
        return self.run.status.value, self.run.reason

    @property
    def outcomes(self) -> list[str]:
        """Of the attempts, in order."""
        return [attempt.outcome.value for attempt in self.attempts]

    @property
    def codes(self) -> list[list[str]]:
        """For each attempt, what became of its edits."""
        return [[report.code.value for report in attempt.edit_report] for attempt in self.attempts]

    @property
    def actions(self) -> list[str]:
        """What was decided after each failed attempt."""
        return [row.action for row in self.recoveries]

    def calls_of(self, call_type: str) -> list[ModelCall]:
        """The calls of one prompt, in order."""
        return [call for call in self.calls if call.site.call_type == call_type]

    def reading_of(self, call: ModelCall) -> tuple[str, str]:
        """(reading, fault) of a call's answer; ("", "") where it was not read."""
        return next(((row.reading, row.fault) for row in self.readings if row.call_id == call.id), ("", ""))

    def tests(self, kind: str) -> ValidationRow:
        """The first test run of that kind."""
        return next(row for row in self.validations if row.kind == kind)


def read_newest(path: Path) -> Recorded:
    """What the record at `path` holds of its newest run; nothing where there is no record."""
    if not path.exists():
        return Recorded(run=None)
    with contextlib.closing(connect_file("raw", path, read_only=True)) as conn:
        return recorded_newest(conn)


def recorded_newest(conn: Connection) -> Recorded:
    """The same of an open record."""
    found = list_overviews(conn, limit=1)
    if not found:
        return Recorded(run=None)
    task = found[0].task_id
    asked = list_calls(conn, task)
    return Recorded(
        run=get_orchestrator_run(conn, task),
        calls=tuple(call for call in asked if call.site.call_type != "window_probe"),
        probes=tuple(call for call in asked if call.site.call_type == "window_probe"),
        readings=list_readings(conn, task),
        passes=list_task_runs(conn, task),
        attempts=list_attempts(conn, task),
        validations=list_validations(conn, task),
        refinements=list_refinements(conn, task),
        recoveries=list_recovery_decisions(conn, task),
        events=list_events(conn, task),
    )


def list_orchestrator_runs(conn: Connection) -> tuple[OrchestratorRunRow, ...]:
    """The newest 100 runs, newest first."""
    return ORCHESTRATOR_RUNS.select(conn, "ORDER BY timestamp DESC, id DESC LIMIT 100")
