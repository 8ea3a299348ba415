"""Looking into what is recorded of a task: its calls without their texts, and how runs ended."""

from dataclasses import dataclass
from typing import Any

from clean_room_agent.artifacts.event_kinds import EventKind
from clean_room_agent.artifacts.model_calls import (
    AnswerReading,
    CallCost,
    CalledModel,
    CallEnding,
    CallLimits,
    CallReading,
    CallSite,
    CallSummary,
)
from clean_room_agent.db.raw.events import list_events
from clean_room_agent.db.raw.orchestrator_runs import OrchestratorRunRow, get_orchestrator_run
from clean_room_agent.db.raw.runs import RunListing, list_runs
from clean_room_agent.db.raw.task_ids import OF_TASK, task_range
from clean_room_agent.db.rows import Connection

# The newest reading counts: a call is read once, or again after a repair.
CALLS = f"""
SELECT c.id, c.task_id, c.call_type, c.stage_name, c.item, c.attempt, c.model, c.role, c.provider, c.model_digest,
    c.finish, c.error, c.replayed_from,
    c.estimated_tokens, c.prompt_tokens, c.completion_tokens, c.cached_tokens, c.latency_ms, c.timestamp,
    CASE WHEN json_valid(c.request_body) THEN json_extract(c.request_body, '$.options.num_ctx') END,
    CASE WHEN json_valid(c.request_body)
        THEN coalesce(json_extract(c.request_body, '$.options.num_predict'), json_extract(c.request_body, '$.max_tokens'))
        END,
    coalesce(r.reading, ''), coalesce(r.fault, '')
FROM retrieval_llm_calls AS c
LEFT JOIN call_readings AS r ON r.id = (SELECT max(id) FROM call_readings WHERE call_id = c.id)
WHERE {OF_TASK} ORDER BY c.id
"""  # noqa: S608 - a constant condition
FINAL_TESTS = """
SELECT success, tests_run, tests_passed, json_array_length(failing_tests), exit_code FROM validation_results
WHERE task_id = ? AND kind = 'final' ORDER BY id DESC LIMIT 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalTests:
    """The last full test run of a task."""

    success: bool
    tests_run: int | None
    """None where the runner's report cannot be read."""
    tests_passed: int | None
    tests_failed: int
    exit_code: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOverview:
    """What `cra runs` says of one run."""

    listing: RunListing
    run: OrchestratorRunRow | None
    """None where a pass stands alone."""
    tests: FinalTests | None
    discarded: bool
    """Whether its branch and snapshot are gone again: by `cra discard`, or because it was a replay."""
    size: int = 0
    """Bytes of its texts in the record and of the files that it keeps; 0 where nobody asked."""


def list_call_summaries(conn: Connection, task_id: str) -> tuple[CallSummary, ...]:
    """The calls of a task and its passes (or of one pass and what stands under it), by id."""
    return tuple(_summary(row) for row in conn.execute(CALLS, task_range(task_id)))


def _summary(row: tuple[Any, ...]) -> CallSummary:
    call_id, pass_id, call_type, stage_name, item, attempt = row[:6]
    tag, role, provider, digest = row[6:10]
    finish, error, replayed_from = row[10:13]
    estimated, read, written, cached, latency_ms, timestamp = row[13:19]
    window, answer, reading, fault = row[19:]
    return CallSummary(
        id=call_id,
        site=CallSite(
            pass_id=pass_id, call_type=call_type, stage_name=stage_name, item=item, attempt=attempt
        ),
        model=CalledModel(tag=tag, role=role, provider=provider, digest=digest),
        ending=CallEnding(finish=finish, error=error, replayed_from=replayed_from),
        cost=CallCost(
            estimated_tokens=estimated,
            prompt_tokens=read,
            completion_tokens=written,
            cached_tokens=cached,
            latency_ms=latency_ms,
            timestamp=timestamp,
        ),
        limits=CallLimits(window=window, answer=answer),
        read=CallReading(reading=AnswerReading(reading), fault=fault) if reading else None,
    )


def list_overviews(conn: Connection, *, limit: int) -> tuple[RunOverview, ...]:
    """The newest runs, newest first."""
    return tuple(
        RunOverview(
            listing=listing,
            run=get_orchestrator_run(conn, listing.task_id),
            tests=_final_tests(conn, listing.task_id),
            discarded=listing.command == "replay" or _is_discarded(conn, listing.task_id),
        )
        for listing in list_runs(conn, limit=limit)
    )


def _is_discarded(conn: Connection, task_id: str) -> bool:
    return any(event.kind == EventKind.DISCARDED for event in list_events(conn, task_id))


def _final_tests(conn: Connection, task_id: str) -> FinalTests | None:
    row = conn.execute(FINAL_TESTS, (task_id,)).fetchone()
    if row is None:
        return None
    return FinalTests(
        success=bool(row[0]), tests_run=row[1], tests_passed=row[2], tests_failed=row[3], exit_code=row[4]
    )
