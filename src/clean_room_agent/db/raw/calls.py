"""Calls of models: what was asked and answered, how each answer was read, and what was measured by calls: tokens per text,
answers to empty questions, and whether the server enforces its window.
"""

from msgspec import Struct, structs

from clean_room_agent.artifacts.model_calls import (
    AnswerReading,
    BiasKey,
    CallSummary,
    ModelCall,
    ProbedServer,
)
from clean_room_agent.artifacts.prompt_sources import PromptSpan
from clean_room_agent.db.rows import OF_TASK, Connection, Table, select_as, task_range

LOOKED_AT = 2_000
"""Calls of a model are searched among so many of the newest calls of all models."""
# Of the calls that a server answered and counted (no probe, and no text of a gap, around which no chat is framed): the
# tokens that it counted, for each that was estimated with the factor 1.
NEEDED_FACTORS = f"""
SELECT c.prompt_tokens * e.start_factor / c.estimated_tokens FROM retrieval_llm_calls AS c
JOIN task_gauges AS e ON e.model = c.model AND e.calibration_id IS NULL
    AND e.task_id = substr(c.task_id, 1, instr(c.task_id || ':', ':') - 1)
WHERE c.id > (SELECT max(id) FROM retrieval_llm_calls) - {LOOKED_AT} AND c.model = ? AND c.replayed_from IS NULL
    AND c.provider NOT IN ('replay', 'none') AND c.finish NOT LIKE 'error:%'
    AND c.call_type NOT IN ('window_probe', 'fill', 'fill_probe') AND c.prompt_tokens > 0 AND c.estimated_tokens > 0
ORDER BY c.id DESC LIMIT ?
"""  # noqa: S608 - a constant
RENAMED = {
    "site.pass_id": "task_id",
    "model.tag": "model",
    "model.digest": "model_digest",
    "request.spans": "prompt_spans",
    "limits.window": "window_tokens",
    "limits.answer": "answer_tokens",
}
CALLS = Table("retrieval_llm_calls", ModelCall, renamed=RENAMED)
# total() cannot overflow, unlike sum(): a single damaged row would be enough for that.
TOTALS = """
SELECT count(*), total(CASE WHEN error = '' THEN coalesce(prompt_tokens, estimated_tokens) ELSE 0 END),
    total(completion_tokens), total(latency_ms)
FROM retrieval_llm_calls
"""
COPIED = "the answer copies the example"
"""The beginning of the fault of an answer that copied the prompt's example."""
THINKING = "went into thinking, and no answer followed"
"""What the fault of an answer says that is thoughts alone."""
COPYING = f"""
SELECT DISTINCT model FROM retrieval_llm_calls WHERE {OF_TASK} AND task_id <> ?
    AND id IN (SELECT call_id FROM call_readings WHERE fault LIKE ?) ORDER BY model
"""  # noqa: S608 - a constant condition
# The newest reading counts: an answer is read once, or again after a repair.
SUMMARIES = """
(SELECT c.*,
    CASE WHEN json_valid(c.request_body) THEN json_extract(c.request_body, '$.options.num_ctx') END AS window_tokens,
    CASE WHEN json_valid(c.request_body)
        THEN coalesce(json_extract(c.request_body, '$.options.num_predict'), json_extract(c.request_body, '$.max_tokens'))
        END AS answer_tokens,
    CASE WHEN r.id IS NOT NULL THEN json_object('reading', r.reading, 'fault', coalesce(r.fault, '')) END AS read
FROM retrieval_llm_calls AS c
LEFT JOIN call_readings AS r ON r.id = (SELECT max(id) FROM call_readings WHERE call_id = c.id))
"""


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

    @property
    def tokens(self) -> int:
        """Prompt and answer tokens together."""
        return self.prompt_tokens + self.completion_tokens


SPANS = Table("retrieval_llm_calls", _SpansRow)
READINGS = Table("call_readings", ReadingRow)
CALL_SUMMARIES = Table("retrieval_llm_calls", CallSummary, renamed=RENAMED, query=SUMMARIES)
append_call, get_call, list_calls = CALLS.insert, CALLS.get, CALLS.of_task
append_reading = READINGS.insert


def total_of_pass(conn: Connection, pass_id: str) -> CallTotals:
    """Totals of exactly this pass."""
    return select_as(conn, CallTotals, f"{TOTALS} WHERE task_id = ?", (pass_id,))[0]


def total_of_task(conn: Connection, task_id: str) -> CallTotals:
    """Totals of the task and all its passes."""
    return select_as(conn, CallTotals, f"{TOTALS} WHERE {OF_TASK}", task_range(task_id))[0]


def list_prompt_spans(conn: Connection, task_id: str) -> dict[int, tuple[PromptSpan, ...] | None]:
    """Call -> where the lines of its prompt come from; None for calls recorded before spans were stored."""
    return {row.id: row.prompt_spans for row in SPANS.of_task(conn, task_id)}


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
    return CALL_SUMMARIES.of_task(conn, task_id)


class TaskEstimatorRow(Struct, frozen=True, kw_only=True):
    """The estimator that a task's prompts for one model were measured with."""

    id: int = 0
    task_id: str
    model: str
    calibration_id: int | None = None
    """Always None: builds before fitted estimators to calls, and kept the fit in `token_calibrations`."""
    start_factor: float
    timestamp: str


TASK_ESTIMATORS = Table("task_gauges", TaskEstimatorRow)


def append_task_estimators(conn: Connection, rows: tuple[TaskEstimatorRow, ...]) -> None:
    """Insert the rows."""
    for row in rows:
        TASK_ESTIMATORS.insert(conn, row)


def list_task_estimators(conn: Connection, task_id: str) -> tuple[TaskEstimatorRow, ...]:
    """The task's estimators, one per model, by id."""
    return TASK_ESTIMATORS.select(conn, "WHERE task_id = ? ORDER BY id", (task_id,))


def list_needed_factors(conn: Connection, model: str, *, limit: int) -> tuple[float, ...]:
    """The factor that each of the model's newest calls would have needed, newest first."""
    return tuple(float(row[0]) for row in conn.execute(NEEDED_FACTORS, (model, limit)))


class AnswerBiasRow(Struct, frozen=True, kw_only=True):
    """One measurement of a model's answers to a prompt about nothing."""

    id: int = 0
    key: BiasKey
    shares: tuple[tuple[str, float], ...]
    call_id: int
    timestamp: str


ANSWER_BIASES = Table("answer_biases", AnswerBiasRow)
append_bias = ANSWER_BIASES.insert


def newest_bias(conn: Connection, key: BiasKey) -> AnswerBiasRow | None:
    """The latest measurement of this model with this prompt."""
    return ANSWER_BIASES.newest(conn, **structs.asdict(key))


class WindowProofRow(Struct, frozen=True, kw_only=True):
    """One proof that a server enforces a model's window."""

    id: int = 0
    server: ProbedServer
    call_id: int
    timestamp: str


WINDOW_PROOFS = Table("window_proofs", WindowProofRow)
append_proof = WINDOW_PROOFS.insert


def newest_proof(conn: Connection, server: ProbedServer) -> WindowProofRow | None:
    """The latest proof for this server, model and window."""
    return WINDOW_PROOFS.newest(conn, **structs.asdict(server))
