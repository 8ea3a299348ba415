"""What each solve cost: its calls, tokens and seconds, beside how it ended and which model wrote its edits."""

from dataclasses import dataclass

from clean_room_agent.artifacts.outcomes import RunStatus
from clean_room_agent.db.rows import Connection, strange_value

# A call without a count of its own counts as it was estimated, a failed one as nothing.
COSTS = """
SELECT o.task_id, o.status, o.task_description, o.timestamp, o.completed_at,
    coalesce(CASE WHEN json_valid(o.config) THEN json_extract(o.config, '$.models.coding') END, ''),
    coalesce(c.calls, 0), coalesce(c.tokens, 0), coalesce(c.latency_ms, 0)
FROM orchestrator_runs AS o
LEFT JOIN (
    SELECT substr(task_id, 1, instr(task_id || ':', ':') - 1) AS task, count(*) AS calls, total(latency_ms) AS latency_ms,
        total(CASE WHEN error = '' THEN coalesce(prompt_tokens, estimated_tokens) + coalesce(completion_tokens, 0) END)
        AS tokens
    FROM retrieval_llm_calls GROUP BY 1) AS c ON c.task = o.task_id
WHERE o.command = 'solve' ORDER BY o.timestamp, o.id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCost:
    """One solve."""

    task_id: str
    status: RunStatus
    description: str
    timestamp: str
    completed_at: str | None
    model: str
    """The coding model that was configured; "" where the record does not say."""
    calls: int
    tokens: int
    model_ms: int
    """Of all its calls together; calls may have run side by side."""


def list_run_costs(conn: Connection) -> tuple[RunCost, ...]:
    """Every solve, ended or not, oldest first; replays are none.

    Raises:
        RecordError: a column holds what no row of ours does.
    """
    return tuple(
        RunCost(
            task_id=row[0],
            status=_status(row[1]),
            description=row[2],
            timestamp=row[3],
            completed_at=row[4],
            model=str(row[5]),
            calls=int(row[6]),
            tokens=int(row[7]),
            model_ms=int(row[8]),
        )
        for row in conn.execute(COSTS)
    )


def _status(value: str) -> RunStatus:
    try:
        return RunStatus(value)
    except ValueError as exc:
        raise strange_value("orchestrator_runs.status", value) from exc
