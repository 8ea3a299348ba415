"""Queries over many runs: what each prompt cost, and what explains how each run ended."""

from msgspec import Struct

from clean_room_agent.artifacts.model_calls import READ_PER_WRITTEN, AnswerReading, CallReading, ModelCall
from clean_room_agent.artifacts.outcomes import AttemptOutcome, PassType, RunStatus
from clean_room_agent.db.raw.calls import CALL_SUMMARIES, CALLS
from clean_room_agent.db.rows import OF_TASK, Connection, select_as, task_range

# The newest reading counts: a call is read once, or again when its task is resumed.
CALL_SUMS = """
SELECT c.call_type, c.model,
    EXISTS (SELECT 1 FROM adapter_registry AS a WHERE a.stage_name = c.call_type AND a.model_tag = c.model),
    count(*), sum(c.error <> ''), sum(coalesce(r.reading, '') = 'unreadable'),
    sum(coalesce(r.reading, '') = 'repaired'), total(c.prompt_tokens), total(c.completion_tokens), total(c.latency_ms),
    total(CASE WHEN c.cached_tokens IS NOT NULL THEN c.prompt_tokens END), total(c.cached_tokens),
    count(a.call_id), total(a.applied), total(a.passed)
FROM retrieval_llm_calls AS c
LEFT JOIN call_readings AS r ON r.id = (SELECT max(id) FROM call_readings WHERE call_id = c.id)
LEFT JOIN (
    SELECT call_id, max(patch_applied) AS applied, max(outcome = 'applied_and_passed') AS passed
    FROM run_attempts WHERE call_id IS NOT NULL GROUP BY call_id) AS a ON a.call_id = c.id
GROUP BY c.call_type, c.model ORDER BY c.call_type, c.model
"""
ENDED_RUNS = """
SELECT task_id, repo_path, task_description, status, timestamp, coalesce(nullif(snapshot_commit, ''), base_commit)
FROM orchestrator_runs WHERE command = 'solve' AND status IN ('complete', 'unproven', 'partial', 'failed', 'needs_human')
ORDER BY id
"""
DECISIONS = f"""
SELECT d.task_id, d.stage, d.path, d.symbol, d.included, d.detail, d.call_id, coalesce(c.call_type, ''),
    coalesce(c.model, '')
FROM retrieval_decisions AS d LEFT JOIN retrieval_llm_calls AS c ON c.id = d.call_id
WHERE {OF_TASK.replace("task_id", "d.task_id")} AND d.path <> '' ORDER BY d.id
"""  # noqa: S608 - a constant condition
PASSES = """
SELECT t.task_id, p.pass_type, coalesce(t.success, 0), coalesce(t.final_diff, ''), coalesce(t.final_plan, '')
FROM orchestrator_runs AS o
JOIN orchestrator_passes AS p ON p.orchestrator_run_id = o.id
JOIN task_runs AS t ON t.id = p.task_run_id
WHERE o.task_id = ? ORDER BY p.sequence_order, p.id
"""
ATTEMPTS = f"""
SELECT t.task_id, a.outcome, a.patch_applied, coalesce(a.call_id, 0)
FROM run_attempts AS a JOIN task_runs AS t ON t.id = a.task_run_id
WHERE {OF_TASK.replace("task_id", "t.task_id")} ORDER BY a.id
"""  # noqa: S608


class CallSums(Struct, frozen=True, kw_only=True):
    """The calls of one prompt to one model. Tokens are as the server counted them."""

    prompt: str
    model: str
    adapter: bool
    """Whether the model is an adapter of this prompt."""
    calls: int
    failed: int
    """Without an answer: the server's errors."""
    unreadable: int
    repaired: int
    prompt_tokens: int
    completion_tokens: int
    latency_ms: int
    told_tokens: int
    """Prompt tokens of calls whose server reports how many came from its cache."""
    cached_tokens: int
    """How many of these came from the cache."""
    tried: int
    """Answers that were to change code, and were tried."""
    applied: int
    """Of these, what could be applied."""
    passed: int
    """Of these, what passed its tests."""

    @property
    def work(self) -> float:
        """Tokens that were written, with those that were read, and did not come from the cache, at a tenth."""
        return self.completion_tokens + (self.prompt_tokens - self.cached_tokens) / READ_PER_WRITTEN


class EndedRun(Struct, frozen=True, kw_only=True):
    """A solve that has ended; replays do not count."""

    task_id: str
    repo_path: str
    description: str
    status: RunStatus
    timestamp: str
    commit: str
    """What it started from."""


class JudgedItem(Struct, frozen=True, kw_only=True):
    """One decision about a file, or a piece of one, with the call that judged it."""

    pass_id: str
    stage: str
    path: str
    symbol: str | None
    included: bool
    detail: str
    call_id: int | None
    prompt: str
    """The call's prompt; "" if the program decided."""
    model: str


class EndedPass(Struct, frozen=True, kw_only=True):
    """A pass of a run with what it made."""

    pass_id: str
    pass_type: PassType
    success: bool
    diff: str
    plan: str


class EndedAttempt(Struct, frozen=True, kw_only=True):
    """An attempt without its texts; `call_id` is 0 if the call is unknown."""

    pass_id: str
    outcome: AttemptOutcome
    applied: bool
    call_id: int


class ReadCall(Struct, frozen=True, kw_only=True):
    """A call and how its answer was read; None if it was not."""

    call: ModelCall
    read: CallReading | None

    @property
    def is_readable(self) -> bool:
        """Whether its answer was usable."""
        return self.read is not None and self.read.reading is not AnswerReading.UNREADABLE


def list_call_sums(conn: Connection) -> tuple[CallSums, ...]:
    """All calls of the record, by prompt and model."""
    return select_as(conn, CallSums, CALL_SUMS)


def list_ended_runs(conn: Connection) -> tuple[EndedRun, ...]:
    """Every solve that ended, oldest first."""
    return select_as(conn, EndedRun, ENDED_RUNS)


def list_judged_items(conn: Connection, task_id: str) -> tuple[JudgedItem, ...]:
    """The decisions of a task about files, by id."""
    return select_as(conn, JudgedItem, DECISIONS, task_range(task_id))


def list_ended_passes(conn: Connection, task_id: str) -> tuple[EndedPass, ...]:
    """The passes of a run, in their order."""
    return select_as(conn, EndedPass, PASSES, (task_id,))


def list_ended_attempts(conn: Connection, task_id: str) -> tuple[EndedAttempt, ...]:
    """The attempts of a task, by id."""
    return select_as(conn, EndedAttempt, ATTEMPTS, task_range(task_id))


def list_read_calls(conn: Connection, task_id: str, prompt: str | None = None) -> tuple[ReadCall, ...]:
    """A task's calls with their texts, of one prompt or of all, by id."""
    tail = f"WHERE {OF_TASK} AND (? IS NULL OR call_type = ?) ORDER BY id"
    selected = tail, (*task_range(task_id), prompt, prompt)
    read = {summary.id: summary.read for summary in CALL_SUMMARIES.select(conn, *selected)}
    return tuple(ReadCall(call=call, read=read.get(call.id)) for call in CALLS.select(conn, *selected))
