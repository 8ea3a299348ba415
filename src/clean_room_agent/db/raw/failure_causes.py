"""Counts a task's calls, attempts and searches by cause: the one place that says why answers were not usable."""

from enum import StrEnum

from msgspec import Struct

from clean_room_agent.db.raw.calls import COPIED, THINKING
from clean_room_agent.db.rows import OF_TASK, Connection, task_range


class Cause(StrEnum):
    """Why an answer or an attempt was not usable."""

    LIMIT = "ran to its limit"
    RUNAWAY = "repeated itself and was stopped"
    UNREADABLE = "could not be read"
    THINKING = "went into thinking alone"
    EXAMPLE = "copied the prompt's example"
    SERVER_TIMEOUT = "timed out"
    SERVER = "failed because of the server"
    REFUSED = "was refused"
    NO_EDITS = "held no edit"
    IMPORT_BROKEN = "broke an import"
    TESTS_RED = "failed the tests"
    TESTS_TIMEOUT = "ran out of the tests' time"
    NOTHING_IN_SCOPE = "found nothing in scope"

    @property
    def is_of_model(self) -> bool:
        """Whether the model's answer itself was the cause. (Thinking is not: it is switched off at the server.)"""
        return self in {Cause.LIMIT, Cause.RUNAWAY, Cause.UNREADABLE, Cause.EXAMPLE, Cause.NO_EDITS}


class CauseCount(Struct, frozen=True, kw_only=True):
    """`count` of `total` failed for this cause."""

    cause: Cause
    subject: str
    """The prompt whose answers are counted; "" if attempts at steps or searches for context are counted."""
    count: int
    total: int
    codes: tuple[str, ...] = ()
    """For `REFUSED`, why edits were refused, most frequent first."""


class Causes(Struct, frozen=True, kw_only=True):
    """Everything in a task that failed, most frequent cause first, out of everything that was asked."""

    counts: tuple[CauseCount, ...] = ()
    asked: tuple[tuple[str, int], ...] = ()
    """All calls by prompt, including usable ones."""


INTERRUPTED = "error:CallInterrupted"
"""The end of a call that the user's Ctrl-C stopped, which is nobody's failure."""
THIS_TASK = OF_TASK.replace("= ?", "= ?1").replace("> ?", "> ?2").replace("< ?", "< ?3")
# The newest reading of an answer counts. A call that was repeated after an error counts each time. What was usable has no
# cause, and a truncated or unreadable answer of an attempt is counted as a call.
CAUSES = f"""
WITH found(kind, subject, cause) AS (
    SELECT 'call', c.call_type, CASE
        WHEN c.finish = '{INTERRUPTED}' THEN ''
        WHEN c.finish = 'error:DegenerateOutput' THEN 'RUNAWAY'
        WHEN c.finish = 'error:ServerTimeout' THEN 'SERVER_TIMEOUT'
        WHEN c.finish LIKE 'error:%' THEN 'SERVER'
        WHEN coalesce(r.reading, '') <> 'unreadable' THEN ''
        WHEN instr(r.fault, '{COPIED}') = 1 THEN 'EXAMPLE'
        WHEN instr(r.fault, '{THINKING}') THEN 'THINKING'
        WHEN c.finish = 'repeated' THEN 'RUNAWAY'
        WHEN c.finish = 'length' THEN 'LIMIT'
        ELSE 'UNREADABLE' END
    FROM retrieval_llm_calls AS c
    LEFT JOIN call_readings AS r ON r.id = (SELECT max(id) FROM call_readings WHERE call_id = c.id)
    WHERE {THIS_TASK} AND c.call_type <> ?4
    UNION ALL
    SELECT 'attempt', '', CASE outcome WHEN 'refused' THEN 'REFUSED' WHEN 'no_edits' THEN 'NO_EDITS'
        WHEN 'import_broken' THEN 'IMPORT_BROKEN' WHEN 'tests_failed' THEN 'TESTS_RED'
        WHEN 'timed_out' THEN 'TESTS_TIMEOUT' ELSE '' END
    FROM run_attempts WHERE task_run_id IN (SELECT id FROM task_runs WHERE {THIS_TASK})
    UNION ALL
    SELECT 'search', '', CASE max(stage = 'assembly' AND included) WHEN 0 THEN 'NOTHING_IN_SCOPE' ELSE '' END
    FROM retrieval_decisions WHERE {THIS_TASK} GROUP BY task_id)
SELECT kind, subject, cause, count(*), sum(count(*)) OVER (PARTITION BY kind, subject)
FROM found GROUP BY kind, subject, cause ORDER BY 4 DESC, subject
"""  # noqa: S608 - a constant condition
CODES = f"""
SELECT json_extract(e.value, '$.code') FROM run_attempts AS a, json_each(a.edit_report) AS e
WHERE a.outcome = 'refused' AND a.task_run_id IN (SELECT id FROM task_runs WHERE {OF_TASK})
    AND json_extract(e.value, '$.code') NOT IN ('APPLIED', 'ALREADY_APPLIED')
GROUP BY 1 ORDER BY count(DISTINCT a.id) DESC, 1
"""  # noqa: S608


def count_causes(conn: Connection, task_id: str, *, probe: str) -> Causes:
    """Count why calls, attempts and searches of a task and its passes failed.

    `probe` is the call type of requests that a server is supposed to refuse; they are not counted.
    """
    codes = tuple(code for (code,) in conn.execute(CODES, task_range(task_id)))
    rows = conn.execute(CAUSES, (*task_range(task_id), probe)).fetchall()
    counts = [
        CauseCount(
            cause=Cause[cause],
            subject=subject,
            count=count,
            total=total,
            codes=codes if cause == "REFUSED" else (),
        )
        for _, subject, cause, count, total in rows
        if cause
    ]
    order = list(Cause)
    counts.sort(key=lambda one: (-one.count, one.subject, order.index(one.cause)))
    asked = {subject: total for kind, subject, _, _, total in rows if kind == "call"}
    return Causes(counts=tuple(counts), asked=tuple(sorted(asked.items())))
