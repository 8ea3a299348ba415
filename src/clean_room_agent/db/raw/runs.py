"""Runs: the status of each, its events and times, its archived session, and how a person lists and names them."""

from collections.abc import Iterable

from msgspec import Struct, structs

from clean_room_agent.artifacts.goals import GoalOutcome
from clean_room_agent.artifacts.names import counted, parse_run
from clean_room_agent.artifacts.outcomes import EventKind, RunStatus, TimeKind
from clean_room_agent.db.rows import OF_TASK, Connection, Table, select_as, strange_value, task_range
from clean_room_agent.errors import UsageError
from clean_room_agent.json_values import from_json

SHOWN_CANDIDATES = 10
# A pass's id is its task's id, a colon and more. Passes of an orchestrated run are not listed on their own.
# The last two columns are for what is asked for run by run.
OVERVIEWS = """
SELECT task_id, command, status, task_description, timestamp, completed_at, 1, branch, result_commit, reason,
    command = 'replay' OR EXISTS (SELECT 1 FROM events AS e WHERE e.task_id = r.task_id AND e.kind = 'discarded'), NULL, 0
FROM orchestrator_runs AS r
UNION ALL
SELECT t.task_id, t.mode, CASE t.success WHEN 1 THEN 'complete' WHEN 0 THEN 'failed' ELSE 'running' END,
    '', t.timestamp, t.completed_at, 0, '', '', '', 0, NULL, 0
FROM task_runs AS t
WHERE NOT EXISTS (
    SELECT 1 FROM orchestrator_runs AS o
    WHERE o.task_id = substr(t.task_id, 1, instr(t.task_id || ':', ':') - 1))
ORDER BY timestamp DESC, task_id LIMIT ?
"""
FIND_TASKS = """
SELECT task_id FROM orchestrator_runs WHERE substr(task_id, 1, length(?1)) = ?1
UNION
SELECT substr(task_id, 1, instr(task_id || ':', ':') - 1) FROM task_runs WHERE substr(task_id, 1, length(?1)) = ?1
UNION
SELECT substr(task_id, 1, instr(task_id || ':', ':') - 1) FROM retrieval_llm_calls
WHERE substr(task_id, 1, length(?1)) = ?1
ORDER BY 1
"""
COUNTED_BACK = """
SELECT task_id FROM orchestrator_runs WHERE command <> 'replay' ORDER BY timestamp DESC, id DESC LIMIT 1 OFFSET ?
"""
FINAL_TESTS = """
SELECT success, tests_run, tests_passed, json_array_length(failing_tests), exit_code FROM validation_results
WHERE task_id = ? AND kind = 'final' ORDER BY id DESC LIMIT 1
"""


class OrchestratorRunRow(Struct, frozen=True, kw_only=True):
    """One run. `config` and `snapshot` are JSON text."""

    id: int = 0
    task_id: str
    repo_path: str
    task_description: str
    total_parts: int = 0
    total_steps: int = 0
    parts_completed: int = 0
    steps_completed: int = 0
    status: RunStatus = RunStatus.RUNNING
    timestamp: str
    completed_at: str | None = None
    command: str = "solve"
    config: str = "{}"
    program_version: str = ""
    base_commit: str = ""
    snapshot_commit: str = ""
    snapshot: str = ""
    branch: str = ""
    result_commit: str = ""
    reason: str = ""


class RunOutcome(Struct, frozen=True, kw_only=True):
    """How a run ended, or what it waits for (`completed_at` is None if it can be resumed), each field in the column of its name."""

    status: RunStatus
    completed_at: str | None
    reason: str = ""
    branch: str = ""
    result_commit: str = ""


ORCHESTRATOR_RUNS = Table("orchestrator_runs", OrchestratorRunRow)


def append_orchestrator_run(
    conn: Connection, row: OrchestratorRunRow, given: "Iterable[EventRow]" = ()
) -> int:
    """Insert the run with what the user gave it, so that neither is recorded without the other; return the run's id.

    Raises:
        RecordError: (through the record) this task already has a run.
    """
    append_events(conn, given)
    return ORCHESTRATOR_RUNS.insert(conn, row)


def set_snapshot(conn: Connection, run_id: int, *, commit: str, snapshot: str) -> None:
    """Store the commit that the run starts from, and a JSON account of what is in it. Only once per run."""
    ORCHESTRATOR_RUNS.update(conn, run_id, snapshot_commit=commit, snapshot=snapshot)


def set_progress(conn: Connection, /, run_id: int, **counts: int) -> None:
    """Store how far the run has come: the named columns of parts and steps."""
    ORCHESTRATOR_RUNS.update(conn, run_id, **counts)


def set_outcome(
    conn: Connection, run_id: int, outcome: RunOutcome, evidence: "EventRow | None" = None
) -> None:
    """Store how the run ended or why it waits, also when resumed, with the `evidence` for it: both or neither."""
    if evidence is not None:
        known = EVENTS.newest(conn, task_id=evidence.task_id, kind=evidence.kind)
        if known is None or known.detail != evidence.detail:
            append_event(conn, evidence)
    ORCHESTRATOR_RUNS.update(conn, run_id, **structs.asdict(outcome))


def get_orchestrator_run(conn: Connection, task_id: str) -> OrchestratorRunRow | None:
    """The run of exactly this task."""
    return ORCHESTRATOR_RUNS.first(conn, "WHERE task_id = ?", (task_id,))


def list_running(conn: Connection) -> tuple[OrchestratorRunRow, ...]:
    """The runs recorded as running, by id; some of their processes may have died."""
    return ORCHESTRATOR_RUNS.select(conn, "WHERE status = 'running' ORDER BY id")


class EventRow(Struct, frozen=True, kw_only=True):
    """One event; `detail` is plain words, or JSON text if the kind has fields."""

    id: int = 0
    task_id: str
    kind: str
    detail: str = ""
    timestamp: str


EVENTS = Table("events", EventRow, same=("task_id", "kind", "detail"))
append_event, append_event_once, list_events = EVENTS.insert, EVENTS.insert_once, EVENTS.of_task


def recorded_evidence(events: Iterable[EventRow]) -> tuple[GoalOutcome, ...] | None:
    """What became of the goal tests of a run with these events; None if the run was not judged, or not by goal tests.

    Raises:
        RecordError: the event's text is not what this program writes.
    """
    found = [event.detail for event in events if event.kind == EventKind.EVIDENCE]
    try:
        return from_json(found[-1], tuple[GoalOutcome, ...]) if found else None
    except ValueError as exc:
        raise strange_value("events.detail", found[-1]) from exc


def append_events(conn: Connection, rows: Iterable[EventRow]) -> None:
    """Insert the events, all or none."""
    for row in rows:
        EVENTS.insert(conn, row)


class ArchiveRow(Struct, frozen=True, kw_only=True):
    """The archived file of one session."""

    id: int = 0
    task_id: str
    session_blob: bytes
    archived_at: str


ARCHIVES = Table("session_archives", ArchiveRow)
append_archive = ARCHIVES.insert


def get_archive(conn: Connection, task_id: str) -> ArchiveRow | None:
    """The newest archive of exactly this task."""
    return ARCHIVES.newest(conn, task_id=task_id)


class TimeSpanRow(Struct, frozen=True, kw_only=True):
    """A stretch of time in which the run did one thing; spans may overlap."""

    id: int = 0
    task_id: str
    kind: TimeKind
    detail: str = ""
    began_at: str
    ended_at: str


TIME_SPANS = Table("time_spans", TimeSpanRow)
append_time_span = TIME_SPANS.insert


def list_time_spans(conn: Connection, task_id: str) -> tuple[TimeSpanRow, ...]:
    """All spans of a task, in the order they began."""
    return TIME_SPANS.select(conn, f"WHERE {OF_TASK} ORDER BY began_at, id", task_range(task_id))


def find_task(conn: Connection, run: str) -> str:
    """The id of the one task that `run` refers to, as `parse_run` reads it; a complete id wins over longer ones.

    Only solves and plans can be referred to by age: what repeats a run does not become the newest one.

    Raises:
        UsageError: no task begins like this, or several do (the message lists them), or there are not that many.
    """
    named = parse_run(run)
    if named.age is not None:
        return _counted_back(conn, named.age)
    prefix = named.prefix
    found = [str(row[0]) for row in conn.execute(FIND_TASKS, (prefix,))]
    if not found or not prefix:
        raise UsageError(
            f"no task begins with {prefix!r}", hint="`cra runs` lists the tasks of this repository"
        )
    if len(found) == 1 or prefix in found:
        return prefix if prefix in found else found[0]
    shown = ", ".join(found[:SHOWN_CANDIDATES]) + (", ..." if len(found) > SHOWN_CANDIDATES else "")
    raise UsageError(f"{len(found)} tasks begin with {prefix!r}: {shown}", hint="give more of the id")


def _counted_back(conn: Connection, number: int) -> str:
    found = conn.execute(COUNTED_BACK, (number,)).fetchone()
    if found is None:
        (count,) = conn.execute("SELECT count(*) FROM orchestrator_runs WHERE command <> 'replay'").fetchone()
        raise UsageError(
            f"there {'is' if count == 1 else 'are'} {counted(count, 'run') if count else 'no runs'} here",
            hint="`cra runs` lists the tasks of this repository",
        )
    return str(found[0])


class FinalTests(Struct, frozen=True, kw_only=True):
    """The last full test run of a task."""

    success: bool
    tests_run: int | None
    """None if the runner's report cannot be read."""
    tests_passed: int | None
    tests_failed: int
    exit_code: int | None


class RunOverview(Struct, frozen=True, kw_only=True):
    """What `cra runs` shows of an orchestrated run, or of a single pass (a retrieval)."""

    task_id: str
    command: str
    """solve, plan or replay; for a single pass, its mode."""
    status: RunStatus
    task_description: str
    """The user's words; "" for a single pass, as are branch, result and reason."""
    timestamp: str
    completed_at: str | None
    is_run: bool
    branch: str
    result_commit: str
    reason: str
    discarded: bool
    """Whether its branch and snapshot were deleted: by `cra discard`, or because it was a replay."""
    tests: FinalTests | None = None
    size: int = 0
    """Bytes of its texts in the record and of the files that it keeps; 0 if not asked for."""


def list_overviews(conn: Connection, *, limit: int) -> tuple[RunOverview, ...]:
    """The newest runs, newest first.

    Raises:
        RecordError: a column holds a value that this program never writes.
    """
    return tuple(
        structs.replace(run, tests=_final_tests(conn, run.task_id))
        for run in select_as(conn, RunOverview, OVERVIEWS, (limit,))
    )


def _final_tests(conn: Connection, task_id: str) -> FinalTests | None:
    return next(iter(select_as(conn, FinalTests, FINAL_TESTS, (task_id,))), None)
