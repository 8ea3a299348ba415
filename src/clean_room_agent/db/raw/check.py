"""Whether the record is sound: the file, its references, and the chain from each accepted change to its reasons."""

import sqlite3

from clean_room_agent.db.rows import Connection

CHAINS = (
    (
        "pass {0} has ended and belongs to no run",
        """SELECT t.task_id FROM task_runs AS t
        JOIN orchestrator_runs AS r ON t.task_id > r.task_id || ':' AND t.task_id < r.task_id || ';'
        WHERE t.completed_at IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM orchestrator_passes AS p WHERE p.task_run_id = t.id AND p.orchestrator_run_id = r.id)
        ORDER BY t.id""",
    ),
    (
        "attempt {1} of {0} was accepted without a successful test run",
        """SELECT t.task_id, a.attempt FROM run_attempts AS a JOIN task_runs AS t ON t.id = a.task_run_id
        WHERE a.outcome = 'applied_and_passed' AND NOT EXISTS (
            SELECT 1 FROM validation_results AS v WHERE v.attempt_id = a.id AND v.success = 1)
        ORDER BY a.id""",
    ),
    (
        "attempt {1} of {0} was accepted and names no call of its pass",
        """SELECT t.task_id, a.attempt FROM run_attempts AS a JOIN task_runs AS t ON t.id = a.task_run_id
        LEFT JOIN retrieval_llm_calls AS c ON c.id = a.call_id
        WHERE a.outcome = 'applied_and_passed' AND c.task_id IS NOT t.task_id
        ORDER BY a.id""",
    ),
    (
        # A retry is shown the room of the first attempt: the decisions stand under the pass without its ":retry_<n>".
        "attempt {1} of {0} was accepted and its pass records no decision on what it was shown",
        """SELECT t.task_id, a.attempt FROM run_attempts AS a JOIN task_runs AS t ON t.id = a.task_run_id
        WHERE a.outcome = 'applied_and_passed' AND NOT EXISTS (
            SELECT 1 FROM retrieval_decisions AS d WHERE d.task_id IN (
                t.task_id, substr(t.task_id, 1, length(rtrim(t.task_id, '0123456789')) - length(':retry_'))))
        ORDER BY a.id""",
    ),
)


def record_faults(conn: Connection) -> tuple[str, ...]:
    """What is wrong with the record, a line each; nothing where it is sound. Whose file it is, the opening checked."""
    try:
        pages = [str(row[0]) for row in conn.execute("PRAGMA quick_check") if row[0] != "ok"]
        if pages:
            return tuple(pages)
        dangling = [
            f"row {row[1]} of {row[0]} refers to a row of {row[2]} that does not exist"
            for row in conn.execute("PRAGMA foreign_key_check")
        ]
        broken = [message.format(*row) for message, query in CHAINS for row in conn.execute(query)]
    except sqlite3.DatabaseError as exc:
        return (str(exc),)
    return (*dangling, *broken)
