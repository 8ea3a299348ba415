"""Checks the record: its prompts, its references, and the chain from each accepted change to its reasons."""

from collections.abc import Callable

from msgspec import Struct

from clean_room_agent.db.integrity import described
from clean_room_agent.db.rows import Connection, select_as

# An SQL condition on the id of a pass.
OF_ENDED_RUN = """EXISTS (SELECT 1 FROM orchestrator_runs AS o WHERE o.status IN ('complete', 'unproven', 'failed', 'partial')
                AND o.task_id = substr({0}, 1, instr({0}, ':') - 1))"""
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
        # A retry gets the context of the first attempt, whose decisions belong to the pass without ":retry_<n>".
        "attempt {1} of {0} was accepted and its pass records no decision on what it was shown",
        """SELECT t.task_id, a.attempt FROM run_attempts AS a JOIN task_runs AS t ON t.id = a.task_run_id
        WHERE a.outcome = 'applied_and_passed' AND NOT EXISTS (
            SELECT 1 FROM retrieval_decisions AS d WHERE d.task_id IN (
                t.task_id, substr(t.task_id, 1, length(rtrim(t.task_id, '0123456789')) - length(':retry_'))))
        ORDER BY a.id""",
    ),
    (
        "attempt {1} of {0} failed its tests, and no run of them is recorded",
        f"""SELECT t.task_id, a.attempt FROM run_attempts AS a JOIN task_runs AS t ON t.id = a.task_run_id
        WHERE a.outcome IN ('tests_failed', 'import_broken') AND t.completed_at IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM validation_results AS v WHERE v.attempt_id = a.id)
            AND NOT EXISTS (SELECT 1 FROM run_attempts AS b WHERE b.task_run_id = a.task_run_id AND b.id > a.id)
            AND {OF_ENDED_RUN.format("t.task_id")}
        ORDER BY a.id""",  # noqa: S608 - a constant condition
    ),
    (
        # A process that ended between an answer and its reading may have asked again, or kept what it had read.
        "call {0} of {1} was answered, and how the answer was read is not recorded",
        f"""SELECT c.id, c.task_id FROM retrieval_llm_calls AS c
        WHERE c.finish NOT LIKE 'error:%' AND instr(c.task_id, ':') > 0
            AND NOT EXISTS (SELECT 1 FROM call_readings AS r WHERE r.call_id = c.id)
            AND NOT EXISTS (SELECT 1 FROM retrieval_llm_calls AS d
                WHERE d.task_id = c.task_id AND d.call_type = c.call_type AND d.item = c.item AND d.id > c.id)
            AND NOT EXISTS (SELECT 1 FROM events AS e
                WHERE e.task_id = substr(c.task_id, 1, instr(c.task_id, ':') - 1) AND e.kind = 'resumed')
            AND {OF_ENDED_RUN.format("c.task_id")}
        ORDER BY c.id""",  # noqa: S608
    ),
    (
        "run {0} is {2}, and its pass {1} has no end",
        """SELECT r.task_id, t.task_id, r.status FROM orchestrator_runs AS r
        JOIN orchestrator_passes AS p ON p.orchestrator_run_id = r.id JOIN task_runs AS t ON t.id = p.task_run_id
        WHERE r.status IN ('complete', 'unproven') AND t.completed_at IS NULL ORDER BY t.id""",
    ),
    (
        "run {0} has the branch {1} and no result",
        """SELECT task_id, branch FROM orchestrator_runs WHERE branch <> '' AND result_commit = '' ORDER BY id""",
    ),
)
ENDINGS = """
SELECT r.task_id, r.command, r.status, r.branch, r.result_commit,
    EXISTS (SELECT 1 FROM events AS e WHERE e.task_id = r.task_id AND e.kind = 'discarded'),
    EXISTS (SELECT 1 FROM session_archives AS s WHERE s.task_id = r.task_id)
FROM orchestrator_runs AS r ORDER BY r.id
"""
PROMPTS = "SELECT id, system_prompt, prompt, prompt_hash FROM retrieval_llm_calls ORDER BY id"


class RunEnding(Struct, frozen=True, kw_only=True):
    """How a run ended, if it did."""

    task_id: str
    command: str
    status: str
    branch: str
    result_commit: str
    discarded: bool
    archived: bool
    """Whether its session is in the record."""


@described
def prompt_faults(conn: Connection, hash_of: Callable[[str, str], str]) -> tuple[str, ...]:
    """Calls whose prompt no longer matches the hash taken when it was sent, a line each.

    `hash_of` maps system prompt and prompt to the hash.
    """
    return tuple(
        f"the prompt of call {row[0]} is not the one that was sent"
        for row in conn.execute(PROMPTS)
        if hash_of(row[1], row[2]) != row[3]
    )


def list_endings(conn: Connection) -> tuple[RunEnding, ...]:
    """How every run ended, oldest first."""
    return select_as(conn, RunEnding, ENDINGS)


@described
def chain_faults(conn: Connection) -> tuple[str, ...]:
    """Where the chain from a change to its reasons is broken, a line each."""
    dangling = [
        f"row {row[1]} of {row[0]} refers to a row of {row[2]} that does not exist"
        for row in conn.execute("PRAGMA foreign_key_check")
    ]
    broken = [message.format(*row) for message, query in CHAINS for row in conn.execute(query)]
    return (*dangling, *broken)
