"""Every call of a model, and how its answer was read."""

from typing import Any

from msgspec import Struct

from clean_room_agent.artifacts.model_calls import (
    AnswerReading,
    CallCost,
    CalledModel,
    CallEnding,
    CallLimits,
    CallReading,
    CallSite,
    CallSummary,
    ModelCall,
)
from clean_room_agent.artifacts.prompt_sources import PromptSpan
from clean_room_agent.db.rows import OF_TASK, Connection, Table, task_range

CALLS = Table(
    "retrieval_llm_calls",
    ModelCall,
    renamed={
        "site.pass_id": "task_id",
        "model.tag": "model",
        "model.digest": "model_digest",
        "request.spans": "prompt_spans",
    },
)
# total() cannot overflow, unlike sum(): a single damaged row would be enough for that.
TOTALS = """
SELECT count(*), total(CASE WHEN error = '' THEN coalesce(prompt_tokens, estimated_tokens) ELSE 0 END),
    total(completion_tokens), total(latency_ms)
FROM retrieval_llm_calls
"""
COPIED = "the answer copies the example"
"""The beginning of the fault of an answer that copied the prompt's example."""
COPYING = f"""
SELECT DISTINCT model FROM retrieval_llm_calls WHERE {OF_TASK} AND task_id <> ?
    AND id IN (SELECT call_id FROM call_readings WHERE fault LIKE ?) ORDER BY model
"""  # noqa: S608 - a constant condition
# The newest reading counts: an answer is read once, or again after a repair.
SUMMARIES = f"""
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


class ReadingRow(Struct, frozen=True, kw_only=True):
    """How one answer was read."""

    id: int = 0
    call_id: int
    reading: AnswerReading
    fault: str = ""
    timestamp: str


class _SpansRow(Struct, frozen=True, kw_only=True):
    id: int
    prompt_spans: tuple[PromptSpan, ...] | None


class CallTotals(Struct, frozen=True, kw_only=True):
    """Totals over some calls. If the server gave no token count, the estimate counts; a failed call counts as nothing."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    latency_ms: int


SPANS = Table("retrieval_llm_calls", _SpansRow)
READINGS = Table("call_readings", ReadingRow)


def append_call(conn: Connection, call: ModelCall) -> int:
    """Insert the call and return its id."""
    return CALLS.insert(conn, call)


def append_reading(conn: Connection, row: ReadingRow) -> int:
    """Insert how an answer was read and return its id."""
    return READINGS.insert(conn, row)


def total_of_pass(conn: Connection, pass_id: str) -> CallTotals:
    """Totals of exactly this pass."""
    return _total(conn, "task_id = ?", (pass_id,))


def total_of_task(conn: Connection, task_id: str) -> CallTotals:
    """Totals of the task and all its passes."""
    return _total(conn, OF_TASK, task_range(task_id))


def _total(conn: Connection, condition: str, parameters: tuple[str, ...]) -> CallTotals:
    row = conn.execute(f"{TOTALS} WHERE {condition}", parameters).fetchone()
    calls, *sums = map(int, row)
    return CallTotals(calls=calls, prompt_tokens=sums[0], completion_tokens=sums[1], latency_ms=sums[2])


def get_call(conn: Connection, call_id: int) -> ModelCall | None:
    """The call with this id."""
    return CALLS.first(conn, "WHERE id = ?", (call_id,))


def list_calls(conn: Connection, task_id: str) -> tuple[ModelCall, ...]:
    """All calls of a task and its passes (or of one pass and those below it), by id."""
    return CALLS.select(conn, f"WHERE {OF_TASK} ORDER BY id", task_range(task_id))


def list_prompt_spans(conn: Connection, task_id: str) -> dict[int, tuple[PromptSpan, ...] | None]:
    """Call -> where the lines of its prompt come from; None for calls recorded before spans were stored."""
    return {row.id: row.prompt_spans for row in SPANS.select(conn, f"WHERE {OF_TASK}", task_range(task_id))}


def list_readings(conn: Connection, task_id: str) -> tuple[ReadingRow, ...]:
    """All readings of the calls of a task and its passes, by id."""
    tail = f"WHERE call_id IN (SELECT id FROM retrieval_llm_calls WHERE {OF_TASK}) ORDER BY id"  # noqa: S608 - a constant condition
    return READINGS.select(conn, tail, task_range(task_id))


def copying_models(conn: Connection, task_id: str, *, beside: str) -> tuple[str, ...]:
    """The models whose answers copied a prompt's example, in a task and its passes except the pass `beside`."""
    parameters = (*task_range(task_id), beside, f"{COPIED}%")
    return tuple(model for (model,) in conn.execute(COPYING, parameters))


def list_call_summaries(conn: Connection, task_id: str) -> tuple[CallSummary, ...]:
    """The calls of a task and its passes (or of one pass and those below it), by id."""
    return tuple(_summary(row) for row in conn.execute(SUMMARIES, task_range(task_id)))


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
